// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/host/memory/shared_arena.h"
#include "common/wire/shared_buffer.h"

namespace tributary {

// The newest weights of a block, and perhaps those of the versions before. A
// plain object: the block's lock guards it.
class WeightVersions {
 public:
  // `kept`: how many earlier versions are kept, if there are so many. memory:
  // for the weights, while it has room; or null.
  WeightVersions(int64_t size, int kept, std::shared_ptr<SharedArena> memory);

  const SharedBuffer& newest() const { return newest_; }
  // The weights `age` versions before the newest; null: they are gone.
  const SharedBuffer* Before(int64_t age) const;

  // Where to write the next version: in place, unless the present one is kept
  // or is being sent. Finish makes it the newest.
  float* Writable();
  void Finish(const float* written);

  // Where to write the first version: memory that nobody is sent. Forgets the
  // others.
  float* BeginAgain();
  // Where to write the version before the first one. Wants `kept`.
  float* BeginBefore();

 private:
  SharedBuffer New() const { return SharedBuffer(size_, 0, memory_); }

  const int64_t size_;
  const int kept_;
  const std::shared_ptr<SharedArena> memory_;  // or null
  SharedBuffer newest_;
  // [i]: the version i + 1 before the newest, for the first num_earlier_; the
  // others are free. The next version is written to the last one.
  std::vector<SharedBuffer> earlier_;
  int num_earlier_ = 0;
};

}  // namespace tributary
