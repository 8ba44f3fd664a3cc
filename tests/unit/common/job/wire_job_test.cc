// How gradients and weights travel, in the job file:
// strategy.parameter_server.wire, weights_wire and transport.
#include <string>
#include <utility>

#include "common/job/job_file.h"
#include "common/job/job_options.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/unit/common/job/good_job.h"

namespace tributary {
namespace {

using google::protobuf::util::MessageDifferencer;

TEST(WireJobTest, AWireFormatReachesTheStrategy) {
  for (const auto& [wire, bytes] :
       {std::pair("float32", 4), {"bfloat16", 2}, {"float16", 2}}) {
    const v1::JobSpec job =
        Parse(JobWith(0, ""),
              {std::string("strategy.parameter_server.wire=") + wire});
    EXPECT_EQ(StrategyOf(job).gradient_bytes, bytes) << wire;
    EXPECT_EQ(StrategyOf(job).weight_bytes, 4) << wire;
    EXPECT_TRUE(MessageDifferencer::Equals(job, Parse(JobToYaml(job))));
  }
}

TEST(WireJobTest, AWireFormatOfWeightsReachesTheStrategy) {
  const v1::JobSpec job = Parse(
      JobWith(0, ""), {"strategy.parameter_server.weights_wire=bfloat16"});
  EXPECT_EQ(StrategyOf(job).weight_bytes, 2);
  EXPECT_EQ(StrategyOf(job).gradient_bytes, 4);
}

TEST(WireJobTest, ATransportReachesTheStrategy) {
  EXPECT_EQ(StrategyOf(Parse(JobWith(0, ""))).transport, Transport::kAuto);
  for (const auto& [text, transport] :
       {std::pair("auto", Transport::kAuto),
        {"grpc", Transport::kGrpc},
        {"shared_memory", Transport::kSharedMemory}}) {
    const v1::JobSpec job =
        Parse(JobWith(0, ""),
              {std::string("strategy.parameter_server.transport=") + text});
    EXPECT_EQ(StrategyOf(job).transport, transport) << text;
    EXPECT_TRUE(MessageDifferencer::Equals(job, Parse(JobToYaml(job))));
  }
}

}  // namespace
}  // namespace tributary
