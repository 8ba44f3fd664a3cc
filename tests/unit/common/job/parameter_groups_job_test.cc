// SPDX-License-Identifier: Apache-2.0
// training.parameter_groups in a job file.
#include "common/job/job_options.h"
#include "tests/unit/common/job/good_job.h"

namespace tributary {
namespace {

// The good job with these lines at the end of `training`.
std::string WithGroups(const std::string& optimizer,
                       const std::string& groups) {
  return JobWith(
      12, "  optimizer: " + optimizer + "\n  parameter_groups:\n" + groups);
}

constexpr char kMomentum[] =
    "{sgd: {learning_rate: 0.1, momentum: 0.9, weight_decay: 0.01}}";

TEST(ParameterGroupsJobTest, AGroupTakesTheFieldsThatItDoesNotWrite) {
  const v1::JobSpec job = Parse(WithGroups(
      kMomentum,
      "    - {parameters: \"*.bias\", optimizer: {sgd: {weight_decay: 0}}}\n"
      "    - {parameters: [2.weight], optimizer: {sgd: {learning_rate: 1}}}\n"
      "    - {parameters: [0.*]}\n"));
  ASSERT_EQ(job.training().parameter_groups_size(), 3);
  const v1::SgdSpec& bias =
      job.training().parameter_groups(0).optimizer().sgd();
  EXPECT_EQ(bias.learning_rate(), 0.1);
  EXPECT_EQ(bias.momentum(), 0.9);
  EXPECT_EQ(bias.weight_decay(), 0);
  const v1::SgdSpec& weight =
      job.training().parameter_groups(1).optimizer().sgd();
  EXPECT_EQ(weight.learning_rate(), 1);
  EXPECT_EQ(weight.weight_decay(), 0.01);
  EXPECT_EQ(job.training().parameter_groups(2).optimizer().SerializeAsString(),
            job.training().optimizer().SerializeAsString());
}

TEST(ParameterGroupsJobTest, DefaultsAreTheBaseOptimizersKind) {
  const v1::JobSpec job = Parse(WithGroups(
      "adamw", "    - {parameters: [0.*], optimizer: {adamw: {beta1: .5}}}\n"));
  const v1::AdamSpec& adamw =
      job.training().parameter_groups(0).optimizer().adamw();
  EXPECT_EQ(adamw.beta1(), 0.5);
  EXPECT_EQ(adamw.weight_decay(), 1e-2);
  EXPECT_EQ(adamw.learning_rate(), 1e-3);
}

TEST(ParameterGroupsJobTest, AnOverrideIsWrittenToo) {
  const v1::JobSpec job =
      Parse(WithGroups(kMomentum, "    - {parameters: [0.*]}\n"),
            {"training.parameter_groups.0.optimizer.sgd.weight_decay=0"});
  const v1::SgdSpec& sgd = job.training().parameter_groups(0).optimizer().sgd();
  EXPECT_EQ(sgd.weight_decay(), 0);
  EXPECT_EQ(sgd.momentum(), 0.9);
}

TEST(ParameterGroupsJobTest, AResolvedJobReadsTheSameAgain) {
  const v1::JobSpec job = Parse(
      WithGroups(kMomentum,
                 "    - {parameters: [0.weight, \"*.bias\"], optimizer: {sgd: "
                 "{weight_decay: 0}}}\n"
                 "    - {parameters: [2.*], frozen: true}\n"));
  EXPECT_FALSE(job.training().parameter_groups(1).has_optimizer());
  const v1::JobSpec again = Parse(JobToYaml(job));
  EXPECT_EQ(again.SerializeAsString(), job.SerializeAsString());
}

TEST(ParameterGroupsJobTest, AChangeOfAWrittenJobReachesWhatAGroupInherits) {
  const v1::JobSpec job = Parse(
      WithGroups(kMomentum,
                 "    - {parameters: [0.*], optimizer: {sgd: {weight_decay: 0, "
                 "dampening: 0.2}}}\n"
                 "    - {parameters: [2.bias]}\n"));
  const v1::JobSpec changed =
      Parse(JobToYaml(job), {"training.optimizer.sgd.learning_rate=0.5",
                             "training.optimizer.sgd.weight_decay=0.3"});
  const auto sgd = [&](int group) {
    return changed.training().parameter_groups(group).optimizer().sgd();
  };
  EXPECT_EQ(sgd(0).learning_rate(), 0.5);
  EXPECT_EQ(sgd(0).weight_decay(), 0);
  EXPECT_EQ(sgd(0).dampening(), 0.2);
  EXPECT_EQ(sgd(1).learning_rate(), 0.5);
  EXPECT_EQ(sgd(1).weight_decay(), 0.3);
}

TEST(ParameterGroupsJobTest, EveryGroupFollowsTheScheduleFromItsOwnRate) {
  const v1::JobSpec job = Parse(WithGroups(
      kMomentum,
      "    - {parameters: [0.*], optimizer: {sgd: {learning_rate: 0.5}}}\n"
      "    - {parameters: [2.*], frozen: true}\n"
      "  learning_rate_schedule: {step: {step_size: 10}}\n"));
  const auto groups = ParameterGroupsOf(job, 100);
  ASSERT_TRUE(groups.ok()) << groups.status();
  ASSERT_EQ(groups->size(), 2u);
  EXPECT_EQ((*groups)[0].parameters, std::vector<std::string>{"0.*"});
  EXPECT_EQ((*groups)[0].learning_rate(9), 0.5);
  EXPECT_EQ((*groups)[0].learning_rate(10), 0.05);
  EXPECT_EQ((*groups)[0].optimizer.momentum, 0.9);
  EXPECT_FALSE((*groups)[0].frozen);
  EXPECT_TRUE((*groups)[1].frozen);
  EXPECT_EQ((*groups)[1].optimizer.learning_rate, 0.1);
}

struct BadGroups {
  const char* optimizer;
  const char* groups;
  const char* error;
};
constexpr BadGroups kBadGroups[] = {
    {kMomentum, "    - {optimizer: {sgd: {momentum: .5}}}",
     "job.yaml:14: parameters is missing in training.parameter_groups.0"},
    {kMomentum, "    - {parameters: [], frozen: true}",
     "job.yaml:14: training.parameter_groups.0.parameters is empty"},
    {kMomentum, "    - {parameters: [0.*, \"\"], frozen: true}",
     "job.yaml:14: training.parameter_groups.0.parameters.1 is empty"},
    {kMomentum, "    - {parameters: [0.*], optimizer: adam}",
     "job.yaml:14: training.parameter_groups.0.optimizer must be sgd, as "
     "training.optimizer is, got adam"},
    {kMomentum, "    - {parameters: [0.*], optimizer: sgd, frozen: true}",
     "job.yaml:14: training.parameter_groups.0.frozen and "
     "training.parameter_groups.0.optimizer exclude each other; keep one"},
    {kMomentum,
     "    - {parameters: [0.*]}\n"
     "    - parameters: [2.*, 3.*]\n"
     "      frozen: true",
     "job.yaml:15: training.parameter_groups.1.parameters.1: no parameter of "
     "the model has the name \"3.*\"; its parameters are \"0.weight\" to "
     "\"2.bias\""},
    {kMomentum, "    - {parameters: [0.*], optimizer: {sgd: {momentum: 0}}}",
     "job.yaml:14: training.parameter_groups.0.optimizer.sgd.momentum makes "
     "the group another variant of sgd than training.optimizer.sgd.momentum "
     "does; all groups must be of one variant, so that their states have the "
     "same names"},
    {kMomentum, "    - {parameters: [0.*], optimizer: {sgd: {nesterov: true}}}",
     "job.yaml:14: training.parameter_groups.0.optimizer.sgd.nesterov makes "
     "the group another variant of sgd than training.optimizer.sgd.nesterov "
     "does; all groups must be of one variant, so that their states have the "
     "same names"},
    {"adam", "    - {parameters: [0.*], optimizer: {adam: {amsgrad: true}}}",
     "job.yaml:14: training.parameter_groups.0.optimizer.adam.amsgrad makes "
     "the group another variant of adam than training.optimizer.adam.amsgrad "
     "does; all groups must be of one variant, so that their states have the "
     "same names"},
    {kMomentum,
     "    - {parameters: [0.*], optimizer: {sgd: {learning_rate: -1}}}",
     "job.yaml:14: training.parameter_groups.0.optimizer.sgd.learning_rate "
     "must be above 0, got -1"},
    {kMomentum,
     "    - {parameters: [0.*], optimizer: {sgd: {nesterov: true, dampening: "
     ".5}}}",
     "job.yaml:14: training.parameter_groups.0.optimizer.sgd.nesterov wants "
     "momentum above 0 and dampening 0"},
    {kMomentum, "    - {parameters: [0.*], froze: true}",
     "job.yaml:14: unknown field \"froze\" in training.parameter_groups.0; "
     "did you mean \"frozen\"?"},
};

TEST(ParameterGroupsJobTest, ErrorsNameTheLine) {
  for (const BadGroups& bad : kBadGroups) {
    const auto job =
        ParseJob(WithGroups(bad.optimizer, bad.groups), "job.yaml");
    EXPECT_EQ(job.status().message(), bad.error);
  }
}

TEST(ParameterGroupsJobTest, APatternWithoutQuotesIsExplained) {
  const auto job = ParseJob(
      WithGroups(kMomentum, "    - {parameters: [*.bias], frozen: true}"),
      "job.yaml");
  EXPECT_NE(job.status().message().find("begins with * or & in quotes"),
            absl::string_view::npos)
      << job.status();
}

}  // namespace
}  // namespace tributary
