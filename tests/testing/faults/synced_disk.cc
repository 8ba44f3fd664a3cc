// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program (LD_PRELOAD), keeps beside a folder what a power cut
// would leave of it (power_cut.h). TRIBUTARY_SYNCED_FOLDER names the folder,
// TRIBUTARY_SYNCED where the copies are: "KEY" has the bytes that a file had
// when it was synced, or the lines "KEY NAME" of a synced folder's entries.
// Nothing else survives, as POSIX allows: fsync of a file does not keep its
// name, and fsync of a folder keeps only names.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/testing/faults/file_key.h"

namespace {

namespace fs = std::filesystem;
using tributary::testing::FileKey;

std::string Variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

// Processes take turns, so that an older copy never replaces a newer one.
class Turn {
 public:
  explicit Turn(const std::string& copies)
      : fd_(open((copies + "/lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC,
                 0600)) {
    flock(fd_, LOCK_EX);
  }
  ~Turn() { close(fd_); }

 private:
  const int fd_;
};

void Copy(int fd) {
  static const std::string folder = Variable("TRIBUTARY_SYNCED_FOLDER");
  static const std::string copies = Variable("TRIBUTARY_SYNCED");
  std::error_code error;
  const std::string open_file = "/proc/self/fd/" + std::to_string(fd);
  const std::string path = fs::read_symlink(open_file, error);
  if (path != folder && path.rfind(folder + "/", 0) != 0) return;
  const Turn turn(copies);
  const std::string key = FileKey(open_file);
  const std::string copy = copies + "/" + key;
  {
    std::ofstream out(copy + ".part", std::ios::binary);
    if (fs::is_directory(path, error)) {
      for (const auto& entry : fs::directory_iterator(path, error)) {
        const std::string entry_key = FileKey(entry.path());
        if (entry_key.empty()) continue;  // removed meanwhile
        out << entry_key << " " << entry.path().filename().string() << "\n";
      }
    } else if (fs::file_size(open_file, error) > 0) {
      out << std::ifstream(open_file, std::ios::binary).rdbuf();
    }
  }
  fs::rename(copy + ".part", copy, error);
}

using Sync = int (*)(int);

int SyncAndCopy(const char* name, int fd) {
  const auto next = reinterpret_cast<Sync>(dlsym(RTLD_NEXT, name));
  const int result = next(fd);
  if (result == 0) Copy(fd);
  return result;
}

}  // namespace

extern "C" int fsync(int fd) { return SyncAndCopy("fsync", fd); }
extern "C" int fdatasync(int fd) { return SyncAndCopy("fdatasync", fd); }
