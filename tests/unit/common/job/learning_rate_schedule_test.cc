// SPDX-License-Identifier: Apache-2.0
#include "common/job/learning_rate_schedule.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/golden.h"

namespace tributary {
namespace {

using testing::GoldenCase;

void SetWarmup(const GoldenCase& golden, v1::WarmupScheduleSpec* spec) {
  spec->set_warmup(static_cast<int64_t>(golden.Number("warmup", 0)));
  if (golden.attributes.contains("total")) {
    spec->set_total(static_cast<int64_t>(golden.Number("total", 0)));
  }
  spec->set_eta_min(golden.Number("eta_min", 0));
}

v1::ScheduleSpec SpecOf(const GoldenCase& golden) {
  v1::ScheduleSpec spec;
  const std::string kind = golden.Text("kind", "");
  const auto whole = [&](const char* key) {
    return static_cast<int64_t>(golden.Number(key, 0));
  };
  if (kind == "constant") {
    spec.mutable_constant();
  } else if (kind == "step") {
    spec.mutable_step()->set_step_size(whole("step_size"));
    spec.mutable_step()->set_gamma(golden.Number("gamma", 0));
  } else if (kind == "multistep") {
    spec.mutable_multistep()->set_gamma(golden.Number("gamma", 0));
    for (double milestone : golden.Numbers("milestones")) {
      spec.mutable_multistep()->add_milestones(static_cast<int64_t>(milestone));
    }
  } else if (kind == "exponential") {
    spec.mutable_exponential()->set_gamma(golden.Number("gamma", 0));
  } else if (kind == "cosine") {
    spec.mutable_cosine()->set_t_max(whole("t_max"));
    spec.mutable_cosine()->set_eta_min(golden.Number("eta_min", 0));
  } else if (kind == "torch_linearlr") {
    spec.mutable_linear()->set_start_factor(golden.Number("start_factor", 0));
    spec.mutable_linear()->set_total_steps(whole("total_iters"));
  } else if (kind == "warmup_constant") {
    SetWarmup(golden, spec.mutable_warmup_constant());
  } else if (kind == "warmup_cosine") {
    SetWarmup(golden, spec.mutable_warmup_cosine());
  } else if (kind == "warmup_linear") {
    SetWarmup(golden, spec.mutable_warmup_linear());
  } else if (kind == "inverse_sqrt") {
    SetWarmup(golden, spec.mutable_inverse_sqrt());
  }
  return spec;
}

TEST(LearningRateScheduleTest, AgreesWithTheGoldenRates) {
  const std::map<std::string, GoldenCase> cases =
      testing::ReadGoldenGroup("sched");
  EXPECT_EQ(cases.size(), 11u);
  double worst = 0;
  for (const auto& [name, golden] : cases) {
    SCOPED_TRACE(name);
    const v1::ScheduleSpec spec = SpecOf(golden);
    ASSERT_NE(spec.kind_case(), v1::ScheduleSpec::KIND_NOT_SET);
    const auto schedule = LearningRateSchedule::Create(
        spec, golden.Number("lr", 0), /*total_steps=*/1);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    std::vector<double> rates;
    for (int64_t step = 0; step < 100; ++step) {
      rates.push_back(schedule->At(step));
    }
    const double error = golden.ErrorOverTolerance("lr", rates);
    EXPECT_LE(error, 1);
    worst = std::max(worst, error);
  }
  std::printf("sched: worst error over tolerance %.3g\n", worst);
}

TEST(LearningRateScheduleTest, CosineWithWarmupIsWarmupCosine) {
  v1::ScheduleSpec cosine, warmup;
  cosine.mutable_cosine()->set_t_max(50);
  cosine.mutable_cosine()->set_warmup_steps(7);
  cosine.mutable_cosine()->set_eta_min(0.01);
  warmup.mutable_warmup_cosine()->set_total(50);
  warmup.mutable_warmup_cosine()->set_warmup(7);
  warmup.mutable_warmup_cosine()->set_eta_min(0.01);
  const auto a = LearningRateSchedule::Create(cosine, 0.1, 1);
  const auto b = LearningRateSchedule::Create(warmup, 0.1, 1);
  ASSERT_TRUE(a.ok() && b.ok());
  for (int64_t step = 0; step < 60; ++step) EXPECT_EQ(a->At(step), b->At(step));
}

TEST(LearningRateScheduleTest, AScheduleWithoutEndLastsAsLongAsTheJob) {
  v1::ScheduleSpec spec;
  spec.mutable_cosine();
  const auto schedule = LearningRateSchedule::Create(spec, 2, 10);
  ASSERT_TRUE(schedule.ok());
  EXPECT_DOUBLE_EQ(schedule->At(0), 2);
  EXPECT_DOUBLE_EQ(schedule->At(5), 1);
  EXPECT_NEAR(schedule->At(10), 0, 1e-15);
}

TEST(LearningRateScheduleTest, AWarmupBeyondTheEndIsRefused) {
  v1::ScheduleSpec spec;
  spec.mutable_warmup_linear()->set_warmup(10);
  const auto schedule = LearningRateSchedule::Create(spec, 1, 10);
  EXPECT_EQ(schedule.status().message(),
            "learning_rate_schedule wants at least one step after its warm-up "
            "of 10 steps, got a schedule of 10 steps");
}

TEST(LearningRateScheduleTest, LengthsThatNobodyResolvedAreRefused) {
  v1::ScheduleSpec spec;
  spec.mutable_step();
  EXPECT_FALSE(LearningRateSchedule::Create(spec, 1, 10).ok());
  spec.mutable_linear();
  EXPECT_FALSE(LearningRateSchedule::Create(spec, 1, 10).ok());
  spec.mutable_cosine();
  EXPECT_FALSE(LearningRateSchedule::Create(spec, 1, 0).ok());
}

}  // namespace
}  // namespace tributary
