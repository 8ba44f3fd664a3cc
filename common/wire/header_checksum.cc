// SPDX-License-Identifier: Apache-2.0
#include "common/wire/header_checksum.h"

#include <array>
#include <bit>
#include <initializer_list>

#include "common/wire/crc32c/crc32c.h"

namespace tributary {
namespace {

// Feeds 64-bit words into a checksum.
class Words {
 public:
  explicit Words(uint64_t number) { Add(number); }

  template <typename... Numbers>
  Words& Add(uint64_t word, Numbers... more) {
    std::array<unsigned char, sizeof(word)> bytes;
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<unsigned char>(word >> 8 * i);
    }
    crc_ = ExtendCrc32c(crc_, bytes.data(), bytes.size());
    if constexpr (sizeof...(more) > 0) Add(static_cast<uint64_t>(more)...);
    return *this;
  }
  Words& Add(const v1::BlockAddress& address) {
    return Add(address.job_id(), address.plan_epoch(), address.shard(),
               address.block());
  }
  uint32_t crc() const { return crc_; }

 private:
  uint32_t crc_ = 0;
};

uint64_t Word(int64_t value) { return static_cast<uint64_t>(value); }

}  // namespace

uint32_t HeaderCrc32c(const v1::PushPullRequest& message) {
  Words words(1);
  words.Add(message.address())
      .Add(message.rank(), message.incarnation(), message.step(),
           message.samples(), message.wait_ms(), message.base_version());
  if (message.shared_memory() != 0) {
    words.Add(message.shared_memory(),
              static_cast<uint64_t>(message.ranges_size()));
    for (const v1::SharedRange& range : message.ranges()) {
      words.Add(range.offset(), range.bytes());
    }
  }
  if (message.total_samples() != 0) words.Add(message.total_samples());
  if (message.learning_rates_size() > 0) {
    words.Add(static_cast<uint64_t>(message.learning_rates_size()));
    for (const double rate : message.learning_rates()) {
      words.Add(std::bit_cast<uint64_t>(rate));
    }
  }
  return words.crc();
}

uint32_t HeaderCrc32c(const v1::PushPullResponse& message) {
  Words words(2);
  words.Add(Word(message.version()));
  if (message.has_shared_offset()) words.Add(message.shared_offset());
  // The 1 alone would give the same checksum as a shared_offset of 1.
  if (message.skipped()) {
    words.Add(static_cast<uint64_t>(v1::PushPullResponse::kSkippedFieldNumber),
              1);
  }
  return words.crc();
}

uint32_t HeaderCrc32c(const v1::PullRequest& message) {
  Words words(3);
  words.Add(message.address())
      .Add(Word(message.min_version()), message.wait_ms(), message.exact(),
           message.has_finished_steps());
  if (message.has_finished_steps()) words.Add(Word(message.finished_steps()));
  if (message.unrounded()) words.Add(uint64_t{1});
  return words.crc();
}

uint32_t HeaderCrc32c(const v1::PullResponse& message) {
  return Words(4).Add(Word(message.version())).crc();
}

uint32_t HeaderCrc32c(const v1::ClockRequest& message) {
  return Words(5)
      .Add(message.address())
      .Add(message.rank(), message.incarnation(), message.recomputes())
      .crc();
}

uint32_t HeaderCrc32c(const v1::ClockResponse& message) {
  Words words(6);
  words.Add(message.initialized(), message.steps(), message.begun());
  if (const std::string& socket = message.shared_memory_socket();
      !socket.empty()) {
    words.Add(message.shared_memory_token(), socket.size());
    for (const char letter : socket) words.Add(static_cast<uint8_t>(letter));
  }
  return words.crc();
}

uint32_t HeaderCrc32c(const v1::InitializeRequest& message) {
  return Words(7).Add(message.address()).crc();
}

uint32_t HeaderCrc32c(const v1::StatisticsRequest& message) {
  return Words(8)
      .Add(message.job_id(), message.plan_epoch(), message.shard(),
           message.step(), static_cast<int>(message.phase()), message.wait_ms())
      .crc();
}

uint32_t HeaderCrc32c(const v1::StatisticsResponse& message) {
  return Words(9).Add(message.count()).crc();
}

uint32_t HeaderCrc32c(const v1::PutWeightsRequest& message) {
  return Words(10)
      .Add(message.rank(), message.incarnation(), message.plan_epoch(),
           message.step(), message.parameter(), message.offset())
      .crc();
}

}  // namespace tributary
