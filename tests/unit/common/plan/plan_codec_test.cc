// SPDX-License-Identifier: Apache-2.0
#include "common/plan/plan_codec.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using testing::StatusIs;

TEST(PlanCodecTest, HoldersBelowNobodyAreRefused) {
  for (int32_t holder : {INT32_MIN, -1}) {
    for (auto set :
         {&v1::ParameterSpec::set_stage, &v1::ParameterSpec::set_tensor,
          &v1::ParameterSpec::set_other_stage}) {
      v1::Plan plan;
      plan.set_num_workers(1);
      plan.add_servers("127.0.0.1:1");
      plan.set_bucket_bytes(1 << 16);
      v1::ParameterSpec& spec = *plan.add_parameters();
      spec.set_name("w");
      spec.add_shape(4);
      (spec.*set)(holder);
      EXPECT_THAT(MakePartitionPlan(plan).status(),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           "parameter w is held by stage"));
    }
  }
}

v1::Plan PlanWith(v1::WireFormat wire) {
  v1::Plan plan;
  plan.set_num_workers(1);
  plan.add_servers("127.0.0.1:1");
  plan.set_bucket_bytes(1 << 16);
  plan.set_wire(wire);
  for (const char* name : {"w", "running_mean"}) {
    v1::ParameterSpec& spec = *plan.add_parameters();
    spec.set_name(name);
    spec.add_shape(6);
    if (name[0] == 'r') spec.set_running_momentum(0.1);
  }
  return plan;
}

TEST(PlanCodecTest, GradientsTakeTheWireFormatAndRunningAveragesFloat32) {
  for (const auto& [wire, bytes] :
       {std::pair(v1::WIRE_FORMAT_FLOAT32, 6 * 4 + 6 * 4),
        std::pair(v1::WIRE_FORMAT_BFLOAT16, 6 * 2 + 6 * 4),
        std::pair(v1::WIRE_FORMAT_FLOAT16, 6 * 2 + 6 * 4),
        std::pair(v1::WIRE_FORMAT_INT8, 4 + 6 + 6 * 4),
        std::pair(v1::WIRE_FORMAT_TOP_K, 3 * 6 + 6 * 4),
        std::pair(v1::WIRE_FORMAT_ONE_BIT, 8 + 1 + 6 * 4)}) {
    v1::Plan proto = PlanWith(wire);
    proto.set_top_k_fraction(0.5);
    const auto plan = MakePartitionPlan(proto);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const Block& block = plan->blocks(0)[0];
    EXPECT_EQ(block.gradient_bytes(), bytes);
    EXPECT_TRUE(block.answers_floats());
    EXPECT_EQ(block.bytes(), 12 * 4);
    EXPECT_EQ(block.sends_floats(), wire == v1::WIRE_FORMAT_FLOAT32);
  }
}

TEST(PlanCodecTest, WeightsTakeAFormatOfTheirOwn) {
  v1::Plan plan = PlanWith(v1::WIRE_FORMAT_FLOAT32);
  plan.set_weights_wire(v1::WIRE_FORMAT_BFLOAT16);
  const auto cut = MakePartitionPlan(plan);
  ASSERT_TRUE(cut.ok()) << cut.status();
  const Block& block = cut->blocks(0)[0];
  EXPECT_EQ(block.weights_bytes(), 6 * 2 + 6 * 4);
  EXPECT_FALSE(block.answers_floats());
  EXPECT_TRUE(block.sends_floats());
  plan.set_weights_wire(static_cast<v1::WireFormat>(99));
  EXPECT_THAT(MakePartitionPlan(plan).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "wire format 99 is unknown"));
}

TEST(PlanCodecTest, AFractionOfTopKThatIsOutOfRangeIsRefused) {
  v1::Plan plan = PlanWith(v1::WIRE_FORMAT_TOP_K);
  for (const double fraction : {0.0, -0.5, 1.001, std::nan("")}) {
    plan.set_top_k_fraction(fraction);
    EXPECT_THAT(MakePartitionPlan(plan).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         "top_k_fraction must be above 0 and at most 1"));
  }
  for (const double fraction : {1e-9, 0.01, 1.0}) {
    plan.set_top_k_fraction(fraction);
    EXPECT_TRUE(MakePartitionPlan(plan).ok()) << fraction;
  }
}

TEST(PlanCodecTest, IncarnationsThatAreNotOneForEachWorkerAreRefused) {
  v1::Plan plan = PlanWith(v1::WIRE_FORMAT_FLOAT32);
  plan.set_num_workers(2);
  EXPECT_TRUE(MakePartitionPlan(plan).ok()) << "none is known";
  plan.add_incarnations(4);
  EXPECT_THAT(MakePartitionPlan(plan).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "a plan of 2 workers has 1 incarnations"));
  plan.add_incarnations(5);
  EXPECT_TRUE(MakePartitionPlan(plan).ok());
  plan.add_incarnations(6);
  EXPECT_FALSE(MakePartitionPlan(plan).ok());
}

TEST(PlanCodecTest, AWireFormatOfALaterProgramIsRefused) {
  EXPECT_THAT(
      MakePartitionPlan(PlanWith(static_cast<v1::WireFormat>(99))).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "wire format 99 is unknown"));
}

}  // namespace
}  // namespace tributary
