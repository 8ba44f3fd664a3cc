// SPDX-License-Identifier: Apache-2.0
// Times the coordinator at the limits of a job, with its files in $TMPDIR or
// /tmp. The arguments of each benchmark give the sizes.
//
//   heartbeat    A heartbeat, under the coordinator's lock, by the job's number
//                of members, parameters and earlier evaluations.
//   evaluation   Two ranks report one evaluation, which is written to the disk,
//                by the number of earlier evaluations.
//   take_over    A successor opens a run directory, by the number of steps.
//                1: coordinator.totals covers all but the last 5,000 of them.
//                0: there is no coordinator.totals.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/job/job_file.h"
#include "coordinator/page/run_history.h"
#include "coordinator/run/run_directory.h"
#include "coordinator/service/job_control.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;

class RunFolder {
 public:
  RunFolder()
      : path_((fs::temp_directory_path() /
               ("coordinator_bench." + std::to_string(getpid())))
                  .string()) {
    fs::remove_all(path_);
  }
  ~RunFolder() { fs::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

v1::JobSpec JobOf(int servers, int workers) {
  v1::JobSpec job = ParseJob(
                        "name: load\n"
                        "model: {sequential: [{linear: {in: 16, out: 1}}]}\n"
                        "data: {train: {synthetic: {kind: mlp_teacher, rows: "
                        "64000}}, batch_size: 1}\n"
                        "training: {steps: 1000000000, loss: mse, optimizer: "
                        "{sgd: {learning_rate: 0.01}}}\n",
                        "job.yaml")
                        .value();
  job.mutable_cluster()->set_servers(servers);
  job.mutable_cluster()->set_workers(workers);
  return job;
}

// A job that runs, whose state and evaluations are written to a run directory.
class RunningJob {
 public:
  RunningJob(int servers, int workers, int64_t parameters) {
    JobControl::Options options;
    options.state.job = JobOf(servers, workers);
    options.state.lease_ms = 3'600'000;
    run_ = RunDirectory::Create(folder_.path(), options.state.job, 1700000000)
               .value();
    options.clock = &Clock::Real();
    options.save = [this](const v1::CoordinatorState& state) {
      return writes_ ? run_->SaveState(state) : absl::OkStatus();
    };
    options.save_evaluations = [this](const auto& evaluations) {
      return writes_ ? run_->SaveEvaluations(evaluations) : absl::OkStatus();
    };
    control_ = std::make_unique<JobControl>(options);
    for (int i = 0; i < servers + workers; ++i) {
      v1::RegisterRequest request;
      request.set_role(i < servers ? v1::ROLE_SERVER : v1::ROLE_WORKER);
      request.set_instance(absl::StrCat("process-", i));
      request.set_host(absl::StrCat("node-", i));
      request.set_address(absl::StrCat("10.0.0.1:", 1000 + i));
      places_.push_back(control_->calls().Register(request).value());
      roles_.push_back(request.role());
    }
    v1::DeclareModelRequest model;
    model.set_incarnation(places_[servers].incarnation());
    for (int64_t p = 0; p < parameters; ++p) {
      const std::string number = absl::StrCat(p);
      v1::ParameterSpec* const spec = model.add_parameters();
      spec->set_name(std::string(60 - number.size(), 'x') + number);
      spec->add_shape(2);
    }
    model.set_total_steps(1'000'000'000);
    model.set_steps_per_epoch(1000);
    TRIBUTARY_CHECK(control_->calls().DeclareModel(model).ok());
  }

  void Beat(size_t member) {
    v1::HeartbeatRequest request;
    request.set_role(roles_[member]);
    request.set_index(places_[member].index());
    request.set_incarnation(places_[member].incarnation());
    request.set_job_id(places_[member].job_id());
    request.set_term(1);
    request.set_plan_epoch(1);
    TRIBUTARY_CHECK(control_->calls().Heartbeat(request).ok());
  }
  void Evaluate(int64_t step) {
    for (size_t m = 0; m < places_.size(); ++m) {
      if (roles_[m] != v1::ROLE_WORKER) continue;
      v1::ReportEvaluationRequest request;
      request.set_rank(places_[m].index());
      request.set_incarnation(places_[m].incarnation());
      request.set_step(step);
      request.set_epoch(1);
      request.mutable_part()->set_samples(10);
      request.mutable_part()->set_values(10);
      TRIBUTARY_CHECK(control_->calls().ReportEvaluation(request).ok());
    }
  }
  size_t members() const { return places_.size(); }
  // From here on files are written. Earlier work is not measured.
  void Write() { writes_ = true; }

 private:
  const RunFolder folder_;
  bool writes_ = false;
  std::unique_ptr<RunDirectory> run_;
  std::unique_ptr<JobControl> control_;
  std::vector<v1::RegisterResponse> places_;
  std::vector<v1::Role> roles_;
};

void BM_Heartbeat(benchmark::State& state) {
  const auto members = static_cast<int>(state.range(0));
  RunningJob job(1, members - 1, state.range(1));
  for (int64_t step = 1; step <= state.range(2); ++step) job.Evaluate(step);
  job.Write();
  size_t member = 0;
  for (auto _ : state) job.Beat(member++ % job.members());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Heartbeat)
    ->ArgNames({"members", "parameters", "evaluations"})
    ->Args({3, 4, 0})
    ->Args({3, 4, 20'000})
    ->Args({1000, 4, 0})
    ->Args({1000, 20'000, 0})
    ->Args({1000, 65'000, 0})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

void BM_Evaluation(benchmark::State& state) {
  RunningJob job(1, 2, 4);
  int64_t step = 1;
  for (; step <= state.range(0); ++step) job.Evaluate(step);
  job.Write();
  for (auto _ : state) job.Evaluate(step++);
}
BENCHMARK(BM_Evaluation)
    ->ArgName("after")
    ->Arg(0)
    ->Arg(20'000)
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(500)
    ->UseRealTime();

void BM_TakeOver(benchmark::State& state) {
  const RunFolder folder;
  auto run =
      RunDirectory::Create(folder.path(), JobOf(1, 2), 1700000000).value();
  RunHistory history;
  StepRecord record;
  record.loss = 0.123456789;
  record.samples = 64;
  record.seconds.step = 0.00123456789;
  // Not by RunDirectory::AddSteps, which also writes files for TensorBoard.
  std::ofstream lines(folder.path() + "/metrics.jsonl", std::ios::app);
  const int64_t steps = state.range(0);
  for (record.step = 1; record.step <= steps - 5000; ++record.step) {
    lines << MetricsLine(record) << "\n";
    history.AddStep(record);
  }
  lines.flush();
  run.reset();
  const auto open = [&folder](RunHistory* shown) {
    return RunDirectory::Open(
               RunLock::Take(folder.path()).value(), 1700000001,
               {.on_shown = [shown](const auto& s) { shown->RestoreSteps(s); },
                .on_step = [shown](const auto& r) { shown->AddStep(r); }})
        .value();
  };
  if (state.range(1) == 1) {
    RunHistory shown;
    TRIBUTARY_CHECK(open(&shown)->SaveTotals(shown.SaveSteps()).ok());
  }
  for (; record.step <= steps; ++record.step) {
    lines << MetricsLine(record) << "\n";
  }
  lines.flush();
  for (auto _ : state) {
    RunHistory shown;
    run = open(&shown);
    TRIBUTARY_CHECK(run->recorded().step == steps);
    run.reset();
  }
}
BENCHMARK(BM_TakeOver)
    ->ArgNames({"steps", "totals"})
    ->Args({5'000'000, 1})
    ->Args({5'000'000, 0})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1)
    ->UseRealTime();

}  // namespace
}  // namespace tributary

BENCHMARK_MAIN();
