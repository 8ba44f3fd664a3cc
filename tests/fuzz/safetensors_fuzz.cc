// SPDX-License-Identifier: Apache-2.0
// Weights from elsewhere: what can be read can be written, and reads the same.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/safetensors.h"
#include "tests/fuzz/fuzz.h"

namespace tributary::fuzz {
namespace {

// The reader opens files by name: a file in memory has one.
class MemoryFile {
 public:
  explicit MemoryFile(absl::string_view bytes)
      : fd_(memfd_create("safetensors", MFD_CLOEXEC)) {
    Expect(fd_ >= 0, "the system gives a file in memory");
    Expect(write(fd_, bytes.data(), bytes.size()) ==
               static_cast<ssize_t>(bytes.size()),
           "it can be written");
  }
  ~MemoryFile() { close(fd_); }
  std::string path() const { return absl::StrCat("/proc/self/fd/", fd_); }

 private:
  const int fd_;
};

// Writes the tensors into a file in memory, and returns its path.
std::string Write(const ParameterSpecs& specs,
                  const std::vector<std::vector<float>>& tensors) {
  const char kOut[] = "/dev/shm/tributary-safetensors-fuzz";
  const std::string path = absl::StrCat(kOut, getpid());
  std::vector<const float*> data;
  for (const auto& tensor : tensors) data.push_back(tensor.data());
  Expect(WriteSafetensors(path, specs, data).ok(),
         "tensors that were read can be written");
  return path;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * 4) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile file(Input(data, size).Rest());
  const absl::StatusOr<SafetensorsReader> reader =
      SafetensorsReader::Open(file.path());
  if (!reader.ok()) return 0;
  const ParameterSpecs& specs = reader->tensors();
  Expect(MatchTensors(*reader, specs).ok(), "a file fits its own tensors");
  std::vector<std::vector<float>> tensors;
  bool all_floats = true;
  for (size_t i = 0; i < specs.size(); ++i) {
    tensors.emplace_back(specs[i].size());
    const bool floats = reader->CheckType(i).ok();
    all_floats = all_floats && floats;
    Expect(reader->Read(i, absl::MakeSpan(tensors.back())).ok() == floats,
           "a tensor of floats that the header names can be read");
  }
  if (!all_floats) return 0;
  const std::string path = Write(specs, tensors);
  const auto again = ReadSafetensors(path, specs);
  unlink(path.c_str());
  Expect(again.ok(), "what was written can be read");
  for (size_t i = 0; i < specs.size(); ++i) {
    Expect(SameBits(tensors[i], (*again)[i]), "tensors keep their bits");
  }
  return 0;
}

}  // namespace tributary::fuzz
