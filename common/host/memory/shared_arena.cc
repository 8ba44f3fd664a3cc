// SPDX-License-Identifier: Apache-2.0
#include "common/host/memory/shared_arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/status/status_macros.h"

// glibc 2.36 declares it only for newer kernels' headers (linux/fcntl.h).
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace tributary {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kPage = 4096;
constexpr size_t kLarge = 8 * kPage;
constexpr size_t kHugePage = 2 << 20;
// Without these seals the owner could shrink the memory while it is read.
constexpr int kReadersSeals = F_SEAL_SHRINK | F_SEAL_SEAL;
constexpr int kSeals = kReadersSeals | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;

size_t RoundUp(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

absl::Status Failed(const char* call) {
  return absl::UnavailableError(
      absl::StrCat("shared memory: ", call, ": ", std::strerror(errno)));
}

absl::StatusOr<UniqueFd> CreateMemory(size_t bytes) {
  UniqueFd memory(memfd_create("tributary", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.ok()) return Failed("memfd_create");
  if (ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) {
    return Failed("ftruncate");
  }
  return memory;
}

// Reserves addresses that begin at a multiple of a huge page's size, so that
// the kernel can use huge pages.
absl::StatusOr<char*> Reserve(size_t bytes) {
  const size_t room = bytes + kHugePage;
  void* const any = mmap(nullptr, room, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (any == MAP_FAILED) return Failed("mmap");
  char* const begin = static_cast<char*>(any);
  const auto address = reinterpret_cast<uintptr_t>(begin);
  char* const base = begin + (RoundUp(address, kHugePage) - address);
  char* const end = base + RoundUp(bytes, kPage);
  if (base > begin) munmap(begin, base - begin);
  if (begin + room > end) munmap(end, begin + room - end);
  return base;
}

// Maps the memory at reserved addresses.
absl::Status MapAt(char* base, const UniqueFd& memory, size_t bytes,
                   int protection) {
  if (mmap(base, bytes, protection, MAP_SHARED | MAP_FIXED, memory.get(), 0) ==
      MAP_FAILED) {
    return Failed("mmap");
  }
  if (bytes >= kHugePage) madvise(base, bytes, MADV_HUGEPAGE);  // only a hint
  return absl::OkStatus();
}

// Call this after the owner has mapped the memory for writing.
absl::Status Seal(const UniqueFd& memory) {
  if (fcntl(memory.get(), F_ADD_SEALS, kSeals) == 0) return absl::OkStatus();
  return Failed("F_ADD_SEALS");
}

}  // namespace

absl::StatusOr<std::shared_ptr<SharedArena>> SharedArena::Create(size_t bytes) {
  TRIBUTARY_CHECK(bytes > 0);
  const size_t size = RoundUp(bytes, kPage);
  TRIBUTARY_ASSIGN_OR_RETURN(UniqueFd memory, CreateMemory(size));
  TRIBUTARY_ASSIGN_OR_RETURN(char* const base, Reserve(size));
  const absl::Status mapped = MapAt(base, memory, size, PROT_READ | PROT_WRITE);
  // From here on the arena's destructor unmaps.
  std::shared_ptr<SharedArena> arena(
      new SharedArena(base, size, std::move(memory)));
  TRIBUTARY_RETURN_IF_ERROR(mapped);
  absl::MutexLock lock(&arena->mu_);
  TRIBUTARY_RETURN_IF_ERROR(Seal(arena->memory_));
  return arena;
}

SharedArena::SharedArena(char* base, size_t size, UniqueFd memory)
    : base_(base),
      size_(size),
      memory_(std::move(memory)),
      free_({{0, size}}) {}

SharedArena::~SharedArena() { munmap(base_, size_); }

size_t SharedArena::Taken(size_t bytes) {
  return bytes < kLarge ? RoundUp(std::max<size_t>(bytes, 1), kLine)
                        : RoundUp(bytes, kPage) + kPage;
}

void* SharedArena::Allocate(size_t bytes) {
  const size_t unit = bytes < kLarge ? kLine : kPage;
  const size_t wanted = RoundUp(std::max<size_t>(bytes, 1), unit);
  absl::MutexLock lock(&mu_);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const size_t begin = it->first, end = begin + it->second;
    const size_t at = RoundUp(begin, unit);
    if (at > end || end - at < wanted) continue;
    free_.erase(it);
    if (at > begin) free_.emplace(begin, at - begin);
    if (end - at > wanted) free_.emplace(at + wanted, end - at - wanted);
    used_.emplace(at, wanted);
    return base_ + at;
  }
  return nullptr;
}

void SharedArena::Free(void* memory) {
  absl::MutexLock lock(&mu_);
  const auto used = used_.find(static_cast<char*>(memory) - base_);
  TRIBUTARY_CHECK(used != used_.end());
  auto [offset, bytes] = *used;
  used_.erase(used);
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  free_.emplace(offset, bytes);
}

std::optional<uint64_t> SharedArena::OffsetOf(const void* data,
                                              size_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(data);
  const auto base = reinterpret_cast<uintptr_t>(base_);
  if (at < base || bytes > size_ || at - base > size_ - bytes) {
    return std::nullopt;
  }
  return at - base;
}

absl::StatusOr<UniqueFd> SharedArena::Share() {
  absl::MutexLock lock(&mu_);
  UniqueFd copy(fcntl(memory_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.ok()) return Failed("F_DUPFD_CLOEXEC");
  shared_ = true;
  return copy;
}

absl::Status SharedArena::Detach() {
  absl::MutexLock lock(&mu_);
  if (!shared_) return absl::OkStatus();
  if (before_detach_) before_detach_();
  TRIBUTARY_ASSIGN_OR_RETURN(UniqueFd memory, CreateMemory(size_));
  for (size_t written = 0; written < size_;) {
    const ssize_t more = pwrite(memory.get(), base_ + written, size_ - written,
                                static_cast<off_t>(written));
    if (more <= 0) return Failed("pwrite");
    written += static_cast<size_t>(more);
  }
  TRIBUTARY_RETURN_IF_ERROR(
      MapAt(base_, memory, size_, PROT_READ | PROT_WRITE));
  ++moves_;
  memory_ = std::move(memory);
  shared_ = false;
  return Seal(memory_);
}

void SharedArena::OnDetach(std::function<void()> before) {
  absl::MutexLock lock(&mu_);
  before_detach_ = std::move(before);
}

absl::StatusOr<std::shared_ptr<const MappedArena>> MappedArena::Map(
    const UniqueFd& memory) {
  const int seals = fcntl(memory.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kReadersSeals) != kReadersSeals) {
    return absl::InvalidArgumentError(
        "shared memory: wanted a memfd that is sealed against shrinking and "
        "against further seals");
  }
  struct stat status = {};
  if (fstat(memory.get(), &status) != 0) return Failed("fstat");
  if (status.st_size <= 0) {
    return absl::InvalidArgumentError("shared memory: it has no bytes");
  }
  const auto size = static_cast<size_t>(status.st_size);
  TRIBUTARY_ASSIGN_OR_RETURN(char* const base, Reserve(size));
  std::shared_ptr<const MappedArena> arena(new MappedArena(base, size));
  TRIBUTARY_RETURN_IF_ERROR(MapAt(base, memory, size, PROT_READ));
  return arena;
}

MappedArena::~MappedArena() { munmap(const_cast<char*>(base_), size_); }

}  // namespace tributary
