#include "common/job/learning_rate_schedule.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

using Attributes = std::map<std::string, std::string>;

struct GoldenCase {
  Attributes attributes;
  std::vector<double> rates;  // at step 0, 1, ...
  double tolerance = 0;       // relative to the largest rate
};

// tests/golden/sched.tsv and sched.bin.
std::map<std::string, GoldenCase> ReadGolden() {
  const std::string base =
      std::string(TRIBUTARY_SOURCE_DIR) + "/tests/golden/sched";
  std::ifstream index(base + ".tsv"), data(base + ".bin", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(data)), {});
  std::map<std::string, GoldenCase> cases;
  for (std::string line; std::getline(index, line);) {
    const std::vector<std::string> cells = absl::StrSplit(line, '\t');
    if (cells[0] == "A") {
      cases[cells[1]].attributes[cells[2]] = cells[3];
    } else if (cells[0] == "T") {
      GoldenCase& golden = cases[cells[1]];
      golden.rates.resize(std::stoul(cells[5]));
      std::memcpy(golden.rates.data(), bytes.data() + std::stoul(cells[6]),
                  std::stoul(cells[7]));
      golden.tolerance = std::stod(cells[8]);
    }
  }
  return cases;
}

double Number(const Attributes& attributes, const std::string& name) {
  return std::stod(attributes.at(name));
}

void SetWarmup(const Attributes& a, v1::WarmupScheduleSpec* spec) {
  spec->set_warmup(std::stoll(a.at("warmup")));
  if (a.contains("total")) spec->set_total(std::stoll(a.at("total")));
  if (a.contains("eta_min")) spec->set_eta_min(Number(a, "eta_min"));
}

v1::ScheduleSpec SpecOf(const Attributes& a) {
  v1::ScheduleSpec spec;
  const std::string kind = a.at("kind");
  if (kind == "\"constant\"") {
    spec.mutable_constant();
  } else if (kind == "\"step\"") {
    spec.mutable_step()->set_step_size(std::stoll(a.at("step_size")));
    spec.mutable_step()->set_gamma(Number(a, "gamma"));
  } else if (kind == "\"multistep\"") {
    spec.mutable_multistep()->set_gamma(Number(a, "gamma"));
    std::stringstream list(a.at("milestones").substr(1));
    for (std::string item; std::getline(list, item, ',');) {
      spec.mutable_multistep()->add_milestones(std::stoll(item));
    }
  } else if (kind == "\"exponential\"") {
    spec.mutable_exponential()->set_gamma(Number(a, "gamma"));
  } else if (kind == "\"cosine\"") {
    spec.mutable_cosine()->set_t_max(std::stoll(a.at("t_max")));
    spec.mutable_cosine()->set_eta_min(Number(a, "eta_min"));
  } else if (kind == "\"torch_linearlr\"") {
    spec.mutable_linear()->set_start_factor(Number(a, "start_factor"));
    spec.mutable_linear()->set_total_steps(std::stoll(a.at("total_iters")));
  } else if (kind == "\"warmup_constant\"") {
    SetWarmup(a, spec.mutable_warmup_constant());
  } else if (kind == "\"warmup_cosine\"") {
    SetWarmup(a, spec.mutable_warmup_cosine());
  } else if (kind == "\"warmup_linear\"") {
    SetWarmup(a, spec.mutable_warmup_linear());
  } else if (kind == "\"inverse_sqrt\"") {
    SetWarmup(a, spec.mutable_inverse_sqrt());
  }
  return spec;
}

TEST(LearningRateScheduleTest, AgreesWithTheGoldenRates) {
  const std::map<std::string, GoldenCase> cases = ReadGolden();
  EXPECT_EQ(cases.size(), 11u);
  double worst = 0;
  for (const auto& [name, golden] : cases) {
    SCOPED_TRACE(name);
    const v1::ScheduleSpec spec = SpecOf(golden.attributes);
    ASSERT_NE(spec.kind_case(), v1::ScheduleSpec::KIND_NOT_SET);
    const auto schedule = LearningRateSchedule::Create(
        spec, Number(golden.attributes, "lr"), /*total_steps=*/1);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    ASSERT_EQ(golden.rates.size(), 100u);
    double largest = 0;
    for (double rate : golden.rates) largest = std::max(largest, rate);
    for (size_t step = 0; step < golden.rates.size(); ++step) {
      const double error = std::abs(schedule->At(static_cast<int64_t>(step)) -
                                    golden.rates[step]);
      const double ratio = error / (largest * golden.tolerance);
      EXPECT_LE(ratio, 1) << "step " << step;
      worst = std::max(worst, ratio);
    }
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
