// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/unique_fd.h"

namespace tributary {

// Memory of this process that other processes of the machine can read
// (memfd_create(2)). Its seals promise a reader that the memory never shrinks,
// so that reading it cannot fault, and promise the owner that nobody else can
// write. It has no name in any file system and is freed with its last mapping,
// so a killed process leaves nothing behind. Thread-safe.
class SharedArena {
 public:
  // `bytes`: more than 0; rounded up to whole pages, which take memory only
  // once they are written. Unavailable: the kernel does not provide it; the
  // message names the failed call.
  static absl::StatusOr<std::shared_ptr<SharedArena>> Create(size_t bytes);
  ~SharedArena();
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;

  size_t size() const { return size_; }

  // Returns memory aligned to a page if it is large, else to 64 bytes; nullptr
  // when no free range is large enough. The contents are undefined.
  void* Allocate(size_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // The most bytes that Allocate(bytes) takes from the arena.
  static size_t Taken(size_t bytes);
  void Free(void* memory) ABSL_LOCKS_EXCLUDED(mu_);

  // Where these bytes are in the arena; nullopt: they are not wholly inside it.
  std::optional<uint64_t> OffsetOf(const void* data, size_t bytes) const;

  // Another descriptor of the memory, for MappedArena in another process. After
  // Detach an earlier descriptor refers to the earlier memory.
  absl::StatusOr<UniqueFd> Share() ABSL_LOCKS_EXCLUDED(mu_);

  // Hides later writes from the processes to which the memory was shared: they
  // keep the contents of this moment. Addresses and contents stay as they are
  // for this process. Nobody may write during the call. Does nothing when the
  // memory was never shared.
  absl::Status Detach() ABSL_LOCKS_EXCLUDED(mu_);
  // Sets what Detach calls before it puts other pages at the arena's addresses,
  // so that a driver can unpin the present pages; null: nothing. Do not call
  // this during a Detach.
  void OnDetach(std::function<void()> before) ABSL_LOCKS_EXCLUDED(mu_);
  // How often Detach has put other pages at the arena's addresses. A driver
  // that has pinned the earlier pages keeps writing to these pages.
  uint64_t moves() const { return moves_; }

 private:
  SharedArena(char* base, size_t size, UniqueFd memory);

  char* const base_;
  const size_t size_;

  std::atomic<uint64_t> moves_{0};
  absl::Mutex mu_;
  UniqueFd memory_ ABSL_GUARDED_BY(mu_);
  bool shared_ ABSL_GUARDED_BY(mu_) = false;
  std::function<void()> before_detach_ ABSL_GUARDED_BY(mu_);  // or null
  std::map<size_t, size_t> free_ ABSL_GUARDED_BY(mu_);        // offset to bytes
  std::map<size_t, size_t> used_ ABSL_GUARDED_BY(mu_);        // offset to bytes
};

// Another process's arena, mapped for reading. It stays readable after that
// process has ended.
class MappedArena {
 public:
  // InvalidArgument: not a memfd that is sealed against shrinking and against
  // new seals, or an empty one. Unavailable: it cannot be mapped.
  static absl::StatusOr<std::shared_ptr<const MappedArena>> Map(
      const UniqueFd& memory);
  ~MappedArena();
  MappedArena(const MappedArena&) = delete;
  MappedArena& operator=(const MappedArena&) = delete;

  size_t size() const { return size_; }
  // The bytes from `offset`; nullptr when they do not lie within the arena.
  const char* At(uint64_t offset, uint64_t bytes) const {
    return bytes <= size_ && offset <= size_ - bytes ? base_ + offset : nullptr;
  }

 private:
  MappedArena(const char* base, size_t size) : base_(base), size_(size) {}

  const char* const base_;
  const size_t size_;
};

}  // namespace tributary
