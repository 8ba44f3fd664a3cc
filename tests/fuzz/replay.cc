// SPDX-License-Identifier: Apache-2.0
// The main function of a fuzz target without libFuzzer: runs every file of the
// given folder once, in order, so that earlier findings are tested again.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  std::vector<std::filesystem::path> inputs;
  std::error_code failed;
  for (const auto& entry :
       std::filesystem::directory_iterator(argv[1], failed)) {
    inputs.push_back(entry.path());
  }
  if (inputs.empty()) {
    std::fprintf(stderr, "no input is in %s\n", argv[1]);
    return 1;
  }
  std::sort(inputs.begin(), inputs.end());
  for (const std::filesystem::path& path : inputs) {
    std::printf("%s\n", path.c_str());
    std::fflush(stdout);  // a crash is in the last file named
    std::ifstream file(path, std::ios::binary);
    const std::string input{std::istreambuf_iterator<char>(file), {}};
    if (!file) {
      std::fprintf(stderr, "%s cannot be read\n", path.c_str());
      return 1;
    }
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()),
                           input.size());
  }
  std::printf("%zu inputs\n", inputs.size());
}
