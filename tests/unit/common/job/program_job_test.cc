// SPDX-License-Identifier: Apache-2.0
#include "common/job/program/program_job.h"

#include "common/job/job_file.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

using google::protobuf::util::MessageDifferencer;

constexpr char kAdamW[] = "training.optimizer={adamw: {learning_rate: 0.001}}";

ProgramJobSource Source(const std::string& text,
                        const std::vector<std::string>& overrides = {}) {
  return {.text = text, .file_name = "job.yaml", .overrides = overrides};
}

ProgramJobSource NoFile(const std::vector<std::string>& overrides = {}) {
  return {.name = "train", .overrides = overrides};
}

std::string ErrorOf(const ProgramJobSource& source,
                    const std::vector<std::string>& settings) {
  return std::string(ParseProgramJob(source, settings).status().message());
}

TEST(ProgramJobTest, AJobWithoutModelAndDataIsForAProgram) {
  const auto job = ParseProgramJob(Source("cluster: {workers: 3}"), {kAdamW});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job->has_program());
  EXPECT_FALSE(job->has_model());
  EXPECT_FALSE(job->has_data());
  EXPECT_EQ(job->name(), "job");
  EXPECT_EQ(job->cluster().workers(), 3);
  EXPECT_EQ(job->cluster().servers(), 1);
  EXPECT_EQ(job->training().optimizer().adamw().learning_rate(), 0.001);
  EXPECT_EQ(job->training().optimizer().adamw().beta2(), 0.999);
  EXPECT_TRUE(job->strategy().parameter_server().sync().has_bsp());
  EXPECT_EQ(job->training().length_case(), v1::TrainingSpec::LENGTH_NOT_SET);
  EXPECT_FALSE(job->training().has_loss());
  EXPECT_FALSE(job->training().has_gradient_accumulation());
}

TEST(ProgramJobTest, AResolvedJobCanBeReadAgain) {
  const auto job = ParseProgramJob(
      Source("program: {}\ntraining: {steps: 7, clip_norm: 1}"), {kAdamW});
  ASSERT_TRUE(job.ok()) << job.status();
  const auto again = ParseJob(JobToYaml(*job), "job.yaml");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*job, *again));
}

TEST(ProgramJobTest, WithoutAFileTheJobHasTheGivenName) {
  const auto job = ParseProgramJob(NoFile(), {kAdamW});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->name(), "train");
  EXPECT_EQ(ErrorOf(NoFile(), {}),
            "the job: training.optimizer is missing: neither the job file nor "
            "the program sets it");
}

TEST(ProgramJobTest, TheProgramMayCompleteWhatTheFileBegins) {
  const ProgramJobSource source = Source(
      "training: {optimizer: {sgd: {momentum: 0.5}}}\ncheckpoint: {keep: 2}");
  EXPECT_TRUE(ParseProgramBase(source).ok());
  EXPECT_EQ(ErrorOf(source, {"checkpoint.every_steps=10"}),
            "job.yaml:1: learning_rate is missing in training.optimizer.sgd");
  EXPECT_EQ(ErrorOf(source, {"checkpoint.every_steps=10",
                             "training.optimizer.sgd.learning_rate=1"}),
            "");
  EXPECT_EQ(
      ParseProgramBase(Source("cluster:\n  workers: 0")).status().message(),
      "job.yaml:2: cluster.workers must be at least 1 and at most 1024, "
      "got 0");
}

TEST(ProgramJobTest, TheBaseNeedsNoOptimizer) {
  const auto base = ParseProgramBase(NoFile({"cluster.servers=2"}));
  ASSERT_TRUE(base.ok()) << base.status();
  EXPECT_EQ(base->cluster().servers(), 2);
  EXPECT_FALSE(base->training().has_optimizer());
}

TEST(ProgramJobTest, FieldsOfFileAndProgramAreJoined) {
  const auto job = ParseProgramJob(
      Source("training:\n  optimizer: {adamw: {weight_decay: 0.5}}"),
      {kAdamW, "training.clip_norm=2", "checkpoint={every_steps: 10}",
       "checkpoint.keep=4"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->training().optimizer().adamw().weight_decay(), 0.5);
  EXPECT_EQ(job->training().optimizer().adamw().learning_rate(), 0.001);
  EXPECT_EQ(job->training().clip_norm(), 2);
  EXPECT_EQ(job->checkpoint().every_steps(), 10);
  EXPECT_EQ(job->checkpoint().keep(), 4);
}

TEST(ProgramJobTest, AGroupKeepsTheZerosThatTheProgramSays) {
  const auto job = ParseProgramJob(
      NoFile(), {"training.optimizer={sgd: {learning_rate: 0.1, momentum: 0.9, "
                 "weight_decay: 0.3, nesterov: true}}",
                 "training.parameter_groups=[{parameters: [bias], optimizer: "
                 "{sgd: {learning_rate: 0.1, weight_decay: 0.0}}}]",
                 "program.buffers=rank0"});
  ASSERT_TRUE(job.ok()) << job.status();
  const v1::SgdSpec& group =
      job->training().parameter_groups(0).optimizer().sgd();
  EXPECT_EQ(group.weight_decay(), 0);
  EXPECT_EQ(group.momentum(), 0.9);
  EXPECT_TRUE(group.nesterov());
  EXPECT_EQ(job->program().buffers(), v1::BUFFERS_RANK0);
  EXPECT_THAT(
      ErrorOf(NoFile(), {"training.optimizer={sgd: {learning_rate: 0.1, "
                         "momentum: 0.9, nesterov: true}}",
                         "training.parameter_groups=[{parameters: [bias], "
                         "optimizer: {sgd: {nesterov: false}}}]"}),
      ::testing::HasSubstr("all groups must be of one variant"));
}

TEST(ProgramJobTest, NoProcessTakesOverAnothersProgram) {
  const std::string error =
      "cluster.on_worker_loss: shrink is for a job with model and data, since "
      "no process can run another one's program; use wait or fail";
  const ProgramJobSource file = Source("cluster:\n  on_worker_loss: shrink");
  EXPECT_EQ(ParseProgramBase(file).status().message(), "job.yaml:2: " + error);
  EXPECT_EQ(ErrorOf(file, {kAdamW}), "job.yaml:2: " + error);
  const std::string setting = "cluster.on_worker_loss=shrink";
  EXPECT_EQ(ErrorOf(NoFile(), {kAdamW, setting}),
            "the program's " + setting + ": " + error);
  EXPECT_EQ(ParseProgramBase(NoFile({setting})).status().message(),
            "--set " + setting + ": " + error);
  EXPECT_EQ(ErrorOf(NoFile(), {kAdamW, "cluster.on_worker_loss=fail"}), "");
}

TEST(ProgramJobTest, EqualValuesAreNoContradiction) {
  EXPECT_EQ(ErrorOf(Source("training: {optimizer: {adamw: {learning_rate: "
                           "1e-3}}}",
                           {"cluster.workers=2"}),
                    {kAdamW, "cluster.workers=2"}),
            "");
}

struct Contradiction {
  const char* file;
  const char* override_text;
  const char* setting;
  const char* error;
};

constexpr Contradiction kContradictions[] = {
    {"training:\n  optimizer: {adamw: {learning_rate: 0.1}}", "seed=1", kAdamW,
     "the program's training.optimizer={adamw: {learning_rate: 0.001}}: "
     "training.optimizer.adamw.learning_rate is 0.1 (job.yaml:2), but the "
     "program wants 0.001"},
    {"training:\n  optimizer: {sgd: {learning_rate: 0.1}}", "seed=1", kAdamW,
     "the program's training.optimizer={adamw: {learning_rate: 0.001}}: "
     "training.optimizer is sgd (job.yaml:2), but the program wants adamw"},
    {"", "cluster.workers=4", "cluster.workers=2",
     "the program's cluster.workers=2: cluster.workers is 4 (--set "
     "cluster.workers=4), but the program wants 2"},
    // A value without presence counts once it is written, also when it is the
    // default.
    {"training:\n  clip_norm: 0", "seed=1", "training.clip_norm=1",
     "the program's training.clip_norm=1: training.clip_norm is 0 "
     "(job.yaml:2), but the program wants 1"},
    {"training:\n  learning_rate_schedule: {multistep: {milestones: [1, 2]}}",
     "seed=1",
     "training.learning_rate_schedule={multistep: {milestones: [1, 3]}}",
     "the program's training.learning_rate_schedule={multistep: {milestones: "
     "[1, 3]}}: training.learning_rate_schedule.multistep.milestones is [1, 2] "
     "(job.yaml:2), but the program wants [1, 3]"},
};

TEST(ProgramJobTest, AContradictionNamesTheFieldAndBothValues) {
  for (const Contradiction& c : kContradictions) {
    EXPECT_EQ(ErrorOf(Source(c.file, {c.override_text}), {c.setting}), c.error);
  }
}

TEST(ProgramJobTest, TheTextOfAnEarlierRunYieldsToTheProgramOverridesDoNot) {
  ProgramJobSource source =
      Source("training: {optimizer: {sgd: {learning_rate: 0.1}}, clip_norm: 3}",
             {"cluster.workers=4"});
  source.text_yields = true;
  const auto job = ParseProgramJob(source, {kAdamW, "training.clip_norm=1"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job->training().optimizer().has_adamw());
  EXPECT_EQ(job->training().clip_norm(), 1);
  EXPECT_NE(ErrorOf(source, {kAdamW, "cluster.workers=2"}), "");
}

struct WrongSetting {
  const char* setting;
  const char* error;
};

constexpr WrongSetting kWrongSettings[] = {
    {"training.optimiser=adam",
     "the program's training.optimiser=adam: unknown field \"optimiser\" in "
     "training; did you mean \"optimizer\"?"},
    {"training.optimizer={adamw: {beta1: 2}}",
     "the program's training.optimizer={adamw: {beta1: 2}}: "
     "training.optimizer.adamw.beta1 must be at least 0 and below 1, got 2"},
    {"training.clip_norm",
     "the program's training.clip_norm: wants key=value, as in "
     "training.steps=100"},
    {"training.epochs=3",
     "the program's training.epochs=3: training.epochs is for a job with model "
     "and data; in this job a program of its own decides it"},
    {"training.gradient_accumulation=2",
     "the program's training.gradient_accumulation=2: "
     "training.gradient_accumulation is for a job with model and data; in this "
     "job a program of its own decides it"},
    {"device=cuda",
     "the program's device=cuda: device is for a job with model and data; in "
     "this job a program of its own decides it"},
    {"training.precision=bfloat16",
     "the program's training.precision=bfloat16: training.precision is for a "
     "job with model and data; in this job a program of its own decides it"},
    {"strategy=data_parallel",
     "the program's strategy=data_parallel: strategy.data_parallel is for a "
     "job "
     "with model and data; a program's job takes parameter_server or "
     "all_reduce"},
    {"strategy.all_reduce.backend=nccl",
     "the program's strategy.all_reduce.backend=nccl: "
     "strategy.all_reduce.backend: the gradients of a program are exchanged "
     "through host memory, where nccl cannot be used; use auto or gloo"},
    {"strategy.tensor_parallel=2",
     "the program's strategy.tensor_parallel=2: strategy.tensor_parallel is "
     "for a job with model and data; a program's job takes parameter_server "
     "or all_reduce"},
    {"model={mlp: {in: 1, out: 1}}",
     "the program's model={mlp: {in: 1, out: 1}}: model is for a job with "
     "model and data; in this job a program of its own decides it"},
    {"strategy.parameter_server.sync={bsp: {backup_workers: 1}}",
     "the program's strategy.parameter_server.sync={bsp: {backup_workers: 1}}: "
     "strategy.parameter_server.sync.bsp.backup_workers must be below the "
     "number of workers, 1, got 1"},
};

TEST(ProgramJobTest, AnErrorInASettingNamesTheSetting) {
  for (const WrongSetting& wrong : kWrongSettings) {
    EXPECT_EQ(ErrorOf(NoFile(), {"training.optimizer=adam", wrong.setting}),
              wrong.error);
  }
}

TEST(ProgramJobTest, ModelOrDataInTheFileAreRefusedWithTheirLine) {
  EXPECT_EQ(
      ErrorOf(Source("program: {}\nmodel: {mlp: {in: 1, out: 1}}"), {kAdamW}),
      "job.yaml:2: model is for a job with model and data; in this job a "
      "program of its own decides it");
  EXPECT_EQ(ErrorOf(Source("seed: 1\ndata: {batch_size: 1}"), {kAdamW}),
            "job.yaml:2: the job has a data set of its own, so no program "
            "trains it; start it with `tributary train`");
  EXPECT_EQ(ErrorOf(Source("training:\n  loss: mse"), {kAdamW}),
            "job.yaml:2: training.loss is for a job with model and data; in "
            "this job a program of its own decides it");
}

TEST(ProgramJobTest, OnlyTributaryRunStartsAProgramsJob) {
  const auto job = ParseJob("training: {optimizer: adam}", "job.yaml");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(CheckHasModel(*job, "job.yaml").message(),
            "job.yaml: a job without model and data is for a program of your "
            "own; start it with `tributary run`");
  EXPECT_TRUE(CheckHasModel(v1::JobSpec(), "job.yaml").ok());
}

}  // namespace
}  // namespace tributary
