// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "common/job/job_options.h"
#include "common/job/sources/source_kind.h"
#include "common/member/member.h"
#include "kernels/ops.h"
#include "worker/rank/parallel/gradient_synchronizer.h"
#include "worker/rank/session/adoptions.h"
#include "worker/rank/session/canceller.h"
#include "worker/rank/session/connect_group.h"
#include "worker/rank/session/give_weights.h"
#include "worker/rank/session/pass_gate.h"
#include "worker/rank/session/rank_driver.h"
#include "worker/rank/session/worker_metrics.h"
#include "worker/train/data/batches/step_plan.h"
#include "worker/train/data/shared_data.h"
#include "worker/train/trainer/replica.h"
#include "worker/train/trainer/run_worker.h"
#include "worker/train/trainer/step_probe.h"
#include "worker/train/trainer/trainer.h"

namespace tributary {

// A rank's work, from its device to the job's final weights.
class RankWork final : private TrainingJob, private DrivenRank {
 public:
  struct Tools {
    Member& member;
    Canceller& canceller;
    Adoptions& adoptions;
    WorkerMetrics& metrics;
  };

  RankWork(const WorkerOptions& options, const Tools& tools)
      : options_(options), tools_(tools), member_(tools.member) {}

  // Works until the job has ended for this rank, and reports its own error.
  absl::Status Run();

 private:
  // Opens device, data and model and declares them to the coordinator.
  absl::Status Declare() override;
  absl::Status OpenDevice();
  // FailedPrecondition: this machine has no room for the whole model.
  absl::Status CheckMemory() const;
  absl::Status DescribeInputs(Declaration* declaration) const;
  absl::Status OpenSteps();
  // Builds this worker's part of the model: the whole, or its part in the
  // plan's groups.
  absl::Status MakeReplica(const v1::Plan* plan);
  // 0 for generated data: the job determines the samples, but their last bits
  // may depend on the machine.
  uint32_t DataChecksum() const {
    return IsGenerated(job_.data().train()) ? 0 : data_->train->checksum();
  }
  // The same for the samples that the job evaluates with.
  uint32_t EvaluationChecksum() const;
  uint32_t EvaluatedChecksum() const;
  bool HasModelGroups() const {
    return StrategyOf(job_).mesh().model_size() > 1;
  }

  absl::Status TrainPlan();
  absl::Status TrainFromStart();
  absl::Status TrainSteps();
  // Lets a probe write down what passes through the synchronizer.
  absl::Status AddProbe();
  absl::Status BeginStep(int64_t step) override {
    return PassGate(step, &member_, synchronizer_.get());
  }
  void ReportStep(const v1::StepReport& report, int64_t prefetched) override;
  absl::Status ReportEvaluation(int64_t step, int64_t epoch,
                                const v1::EvaluationPart& part,
                                ResultSender::Set set) override {
    return member_.results().ReportEvaluation(step, epoch, part, set);
  }
  absl::StatusOr<v1::AwaitEvaluationResponse> AwaitEvaluation(
      int64_t step) override {
    return member_.AwaitEvaluation(plan_.epoch(), step);
  }
  GradientSynchronizer::Traffic traffic() const override;
  absl::Status GiveWeights() override {
    return tributary::GiveWeights(member_, *replica_->model(), *ops_, plan_,
                                  step_);
  }
  void EndPlan() override;

  GroupParts group_parts() const {
    return {.member = &member_,
            .ops = ops_.get(),
            .coordinator = options_.coordinator,
            .access = &options_.access,
            .local_meshes = options_.in_process.local_meshes};
  }

  const WorkerOptions& options_;
  const Tools tools_;
  Member& member_;
  const v1::JobSpec& job_ = member_.job();

  std::unique_ptr<Ops> ops_;
  UniqueFd device_claim_;
  bool recomputes_ = false;  // Member::DeclareArithmetic
  std::shared_ptr<const TrainTest> data_;
  std::optional<StepPlan> steps_;

  v1::Plan plan_;
  std::unique_ptr<Replica> replica_;  // of this plan
  // Kept while the other ranks finish, because it may still write checkpoints.
  std::unique_ptr<GradientSynchronizer> synchronizer_;
  StepProbe* probe_ = nullptr;  // synchronizer_ if it is a probe, else null
  int64_t step_ = 0;            // finished under this plan
};

}  // namespace tributary
