// SPDX-License-Identifier: Apache-2.0
#include "common/wire/header_checksum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/wire/crc32c/crc32c.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using testing::StatusIs;

void SetAddress(v1::BlockAddress* address) {
  address->set_job_id(0x0123456789abcdef);
  address->set_plan_epoch(3);
  address->set_shard(1);
  address->set_block(300);
}

v1::PushPullRequest Push() {
  v1::PushPullRequest push;
  SetAddress(push.mutable_address());
  push.set_rank(2);
  push.set_incarnation(5);
  push.set_step(70'000);
  push.set_samples(96);
  push.set_crc32c(0xabcdef01);
  push.set_wait_ms(2000);
  push.set_base_version(70'000);
  return push;
}

// Flips each bit of the message and calls `check` with what protobuf reads.
template <typename Message>
void ExpectEveryBitGuarded(Message message) {
  SignHeader(&message);
  TRIBUTARY_EXPECT_OK(CheckHeader(message));
  const std::string bytes = message.SerializeAsString();
  int guarded = 0;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    Message read;
    if (!read.ParseFromString(flipped)) continue;
    ++guarded;
    if (!CheckHeader(read).ok()) continue;
    // The payload's checksum is the payload's guard.
    if constexpr (requires { message.crc32c(); }) {
      if (read.crc32c() != message.crc32c()) continue;
    }
    read.DiscardUnknownFields();
    EXPECT_EQ(read.SerializeAsString(), bytes)
        << message.GetTypeName() << ", bit " << bit;
  }
  EXPECT_GT(guarded, 0);
}

TEST(HeaderChecksumTest, EveryBitOfEveryMessageIsGuarded) {
  ExpectEveryBitGuarded(Push());
  v1::PushPullRequest announcing = Push();
  announcing.set_total_samples(6144);
  ExpectEveryBitGuarded(announcing);
  v1::PushPullRequest with_rates = Push();
  with_rates.add_learning_rates(0.1);
  ExpectEveryBitGuarded(with_rates);
  with_rates.add_learning_rates(0);
  with_rates.set_total_samples(6144);
  ExpectEveryBitGuarded(with_rates);
  v1::PushPullResponse pushed;
  pushed.set_version(70'001);
  pushed.set_crc32c(0xabcdef01);
  ExpectEveryBitGuarded(pushed);
  pushed.set_skipped(true);
  ExpectEveryBitGuarded(pushed);
  pushed.set_shared_offset(4096);
  ExpectEveryBitGuarded(pushed);
  v1::PullRequest pull;
  SetAddress(pull.mutable_address());
  pull.set_min_version(7);
  pull.set_wait_ms(100);
  pull.set_exact(true);
  ExpectEveryBitGuarded(pull);
  pull.set_finished_steps(0);
  ExpectEveryBitGuarded(pull);
  pull.set_unrounded(true);
  ExpectEveryBitGuarded(pull);
  v1::PullResponse pulled;
  pulled.set_version(7);
  pulled.set_crc32c(1);
  ExpectEveryBitGuarded(pulled);
  v1::ClockRequest clock;
  SetAddress(clock.mutable_address());
  clock.set_rank(1);
  clock.set_incarnation(4);
  clock.set_recomputes(true);
  ExpectEveryBitGuarded(clock);
  v1::ClockResponse steps;
  steps.set_initialized(true);
  steps.set_steps(10);
  steps.set_begun(11);
  ExpectEveryBitGuarded(steps);
  v1::InitializeRequest initialize;
  SetAddress(initialize.mutable_address());
  initialize.set_crc32c(9);
  ExpectEveryBitGuarded(initialize);
  v1::StatisticsRequest statistics;
  statistics.set_job_id(77);
  statistics.set_plan_epoch(1);
  statistics.set_shard(1);
  statistics.set_step(12);
  statistics.set_phase(v1::TRUST_RATIO);
  statistics.set_wait_ms(10'000);
  ExpectEveryBitGuarded(statistics);
  v1::StatisticsResponse values;
  values.set_count(70'000);
  ExpectEveryBitGuarded(values);
  v1::PutWeightsRequest put;
  put.set_rank(2);
  put.set_incarnation(5);
  put.set_plan_epoch(3);
  put.set_step(70'000);
  put.set_parameter(1);
  put.set_offset(524'288);
  put.set_crc32c(0xabcdef01);
  ExpectEveryBitGuarded(put);
}

// docs/messages.md computes the same number in Python, as a client in another
// language would.
TEST(HeaderChecksumTest, ItIsTheChecksumOfLittleEndianWords) {
  const uint64_t words[] = {
      1, 0x0123456789abcdef, 3, 1, 300, 2, 5, 70'000, 96, 2000, 70'000};
  EXPECT_EQ(HeaderCrc32c(Push()), Crc32c(words, sizeof(words)));
  EXPECT_EQ(HeaderCrc32c(Push()), 0x9f03403fu);
}

TEST(HeaderChecksumTest, AnAnnouncedTotalIsTheLastWord) {
  v1::PushPullRequest push = Push();
  push.set_total_samples(6144);
  const uint64_t words[] = {
      1, 0x0123456789abcdef, 3, 1, 300, 2, 5, 70'000, 96, 2000, 70'000, 6144};
  EXPECT_EQ(HeaderCrc32c(push), Crc32c(words, sizeof(words)));
}

TEST(HeaderChecksumTest, AMessageWithoutItIsRefused) {
  EXPECT_THAT(CheckHeader(Push()),
              StatusIs(absl::StatusCode::kDataLoss,
                       "the header of a PushPullRequest was damaged on the "
                       "way: crc32c "));
}

// The same fields in another message make another checksum.
TEST(HeaderChecksumTest, MessagesAreToldApart) {
  v1::PushPullResponse pushed;
  v1::PullResponse pulled;
  EXPECT_NE(HeaderCrc32c(pushed), HeaderCrc32c(pulled));
}

}  // namespace
}  // namespace tributary
