// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program (LD_PRELOAD), makes one of its system calls on a
// file fail with EIO, as a broken disk does. TRIBUTARY_DISK_FAULT selects the
// call:
//   fsync coordinator.state 2   the second fsync of a file with that name
//   write metrics.jsonl 20
//   fdatasync metrics.jsonl 1
//   hold shard- 1   the first fsync returns, without an error, once somebody
//                   has removed the file below
// A prefix of the name is sufficient. The failing call creates the file that
// TRIBUTARY_DISK_FAULT_FIRED names. If several processes share that file, only
// one call in one of them fails.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <sstream>
#include <string>

namespace {

struct Fault {
  Fault() {
    const char* text = getenv("TRIBUTARY_DISK_FAULT");
    std::istringstream(text == nullptr ? "" : text) >> call >> name >> nth;
  }
  std::string call, name;
  int nth = 0;
};

std::string NameOf(int fd) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = readlink(link.c_str(), path, sizeof(path));
  const std::string whole(path, size > 0 ? static_cast<size_t>(size) : 0);
  return whole.substr(whole.rfind('/') + 1);
}

bool Fails(const char* call, int fd) {
  static const Fault fault;
  static std::atomic<int> calls{0};
  if (fault.call != call || NameOf(fd).rfind(fault.name, 0) != 0 ||
      ++calls != fault.nth) {
    return false;
  }
  const char* mark = getenv("TRIBUTARY_DISK_FAULT_FIRED");
  if (mark == nullptr) return true;
  const int made = open(mark, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
  if (made < 0) return false;
  close(made);
  return true;
}

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int fsync(int fd) {
  static const auto next = Next<int (*)(int)>("fsync");
  if (Fails("hold", fd)) {
    const char* const mark = getenv("TRIBUTARY_DISK_FAULT_FIRED");
    while (access(mark, F_OK) == 0) usleep(2000);
  }
  if (!Fails("fsync", fd)) return next(fd);
  errno = EIO;
  return -1;
}

extern "C" int fdatasync(int fd) {
  static const auto next = Next<int (*)(int)>("fdatasync");
  if (!Fails("fdatasync", fd)) return next(fd);
  errno = EIO;
  return -1;
}

extern "C" ssize_t write(int fd, const void* data, size_t size) {
  static const auto next = Next<ssize_t (*)(int, const void*, size_t)>("write");
  if (!Fails("write", fd)) return next(fd, data, size);
  errno = EIO;
  return -1;
}
