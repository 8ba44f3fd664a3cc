// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/read_weights.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/wire/crc32c/crc32c.h"
#include "common/wire/header_checksum.h"
#include "tests/testing/relay/message_relay.h"

namespace tributary {
namespace {

// A bit of the payload's length has changed on the way, so that the first
// answer ends before its payload does.
TEST(FinalWeightsTest, AnAnswerThatCannotBeDecodedIsAskedForAgain) {
  const std::vector<float> weights = {1, 2, 3};
  v1::PullResponse answer;
  answer.set_version(7);
  answer.set_payload(weights.data(), 12);
  answer.set_crc32c(Crc32c(weights.data(), 12));
  SignHeader(&answer);
  const std::string sent = answer.SerializeAsString();
  int calls = 0;
  const testing::MessageRelay server(
      [&](const std::string& /*method*/, const std::string& /*message*/) {
        std::string bytes = sent;
        if (calls++ == 0) bytes[bytes.size() - 13] ^= 16;
        return bytes;
      });
  v1::Plan plan;
  plan.set_job_id(77);
  plan.set_epoch(1);
  plan.set_num_workers(1);
  plan.set_bucket_bytes(1 << 16);
  plan.add_servers(server.address());
  plan.add_parameters()->set_name("w");
  plan.mutable_parameters(0)->add_shape(3);
  const auto read = ReadFinalWeights(plan, 7, {});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->tensors[0], weights);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace tributary
