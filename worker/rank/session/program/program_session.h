// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/member/member.h"
#include "common/telemetry/exporter.h"
#include "kernels/ops.h"
#include "tributary/v1/plan.pb.h"
#include "worker/rank/parallel/gradient_synchronizer.h"
#include "worker/rank/session/canceller.h"
#include "worker/rank/session/program/program_parameters.h"
#include "worker/rank/session/program/program_rates.h"
#include "worker/rank/session/program/program_step.h"
#include "worker/rank/session/rank_driver.h"
#include "worker/rank/session/session.h"
#include "worker/rank/session/worker_metrics.h"

namespace tributary {

// The Session of a process that is a member of the job. RankLife decides what
// is done between two steps: get a plan, connect to its servers or to the other
// ranks, wait for news after an error, end.
class ProgramSession final : public Session, private DrivenRank {
 public:
  // Takes a place in the job. Errors as in Session::Join, except those of the
  // settings, which are submitted before.
  static absl::StatusOr<std::unique_ptr<Session>> Create(Options options);
  ~ProgramSession() override;

  int rank() const override { return static_cast<int>(member_->index()); }
  int world() const override { return job().cluster().workers(); }
  const v1::JobSpec& job() const override { return member_->job(); }
  absl::Status Start(Declaration declaration) override;
  int64_t steps() const override { return steps_; }
  absl::Status SetData(DataStretch data) override;
  const DataCourse& course() const override { return course_; }
  float* gradient(int parameter) override {
    return parameters_->gradient(parameter);
  }
  bool IsUnchanged(int parameter) const override {
    return parameters_->IsUnchanged(parameter);
  }
  uint64_t gradient_moves() const override {
    return parameters_ ? parameters_->gradient_moves() : 0;
  }
  absl::StatusOr<Next> BeginStep(const StepStart& start) override;
  void GradientReady(int parameter) override;
  absl::StatusOr<Next> FinishStep(const StepResult& result) override;
  bool skipped() const override;
  bool is_late() const override;
  absl::Status ShowNewest() override;
  absl::Status HideNewest() override;
  absl::Status ReportEvaluation(const v1::EvaluationPart& part) override;
  absl::StatusOr<Next> Finish() override;
  void Fail(const std::string& why) override;
  void Cancel(const std::string& why) override;
  Traffic traffic() const override;

 private:
  explicit ProgramSession(Options options) : options_(std::move(options)) {}

  absl::Status Join();
  void ServeMetrics();
  absl::Status Declare() override;
  // Performs RankLife's acts until steps can be taken under a plan (kStep) or
  // the job is over for this rank (kEnd).
  absl::StatusOr<Next> Follow();
  // Connects to the servers of the plan or, without servers, to the other
  // ranks.
  absl::StatusOr<std::unique_ptr<GradientSynchronizer>> Connect();
  absl::Status BeginPlan();
  void EndPlan() override;
  // Goes on after the work under the plan ended with `status`.
  absl::StatusOr<Next> GoOn(const absl::Status& status);
  absl::Status GiveWeights() override;
  void Report(const StepResult& result, int64_t step, double wait_seconds);
  // The epoch of a step, both from 1; 0 for step 0.
  int64_t EpochOf(int64_t step) const;
  absl::Status Cancelled() const override;

  const Options options_;
  const Clock& clock_ = Clock::Real();
  std::unique_ptr<Ops> ops_;  // the host's
  std::unique_ptr<Exporter> exporter_;
  WorkerMetrics metrics_;
  Canceller canceller_;
  std::unique_ptr<Member> member_;
  Exporter::Handle health_;
  Exporter::Handle source_;
  std::unique_ptr<RankDriver> driver_;
  bool recomputes_ = false;

  Declaration declaration_;
  DataCourse course_;
  std::unique_ptr<ProgramParameters> parameters_;
  // The weights of rank 0, for a job that starts over without a checkpoint.
  std::vector<std::vector<float>> initial_;

  v1::Plan plan_;
  std::unique_ptr<ProgramRates> rates_;  // this and the next: of this plan
  std::unique_ptr<GradientSynchronizer> synchronizer_;
  int64_t steps_ = 0;
  bool in_step_ = false;
  bool over_ = false;  // the job has ended for this rank
  ProgramStep this_step_;

  mutable absl::Mutex mu_;
  std::string cancelled_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
