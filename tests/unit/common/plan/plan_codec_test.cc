#include "common/plan/plan_codec.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tributary
