// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "common/plan/partition_plan.h"
#include "coordinator/service/job_control.h"
#include "tests/simulation/job/context.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary::simulation {

// The coordinator's process: JobControl, with the rounds of its threads
// (leases; manifests and final weights) as events.
class SimulatedCoordinator final : public Process {
 public:
  static constexpr char kAddress[] = "coordinator:1";

  // The constructor fills in `clock`.
  SimulatedCoordinator(int64_t pid, Context* context,
                       JobControl::Options options);

  void Start();

  // Makes a call of the job. What it changed is seen at once.
  template <typename Call>
  auto Do(const Call& call) {
    const absl::Cleanup take = [this] { TakeUpdates(); };
    return call(*control_);
  }
  absl::StatusOr<v1::RegisterResponse> Register(
      const v1::RegisterRequest& request) {
    return Do([&](JobControl& job) { return job.calls().Register(request); });
  }
  absl::StatusOr<v1::DeclareModelResponse> DeclareModel(
      const v1::DeclareModelRequest& request) {
    const absl::Status status =
        Do([&](JobControl& job) { return job.calls().DeclareModel(request); });
    if (!status.ok()) return status;
    return v1::DeclareModelResponse();
  }
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(
      const v1::HeartbeatRequest& request) {
    return Do([&](JobControl& job) { return job.calls().Heartbeat(request); });
  }
  // Answers when there is such a plan, or after this time.
  void GetPlan(uint64_t min_epoch, int64_t wait_micros,
               const MemberPlace& member, Reply<v1::Plan> reply);

  bool over() const {
    return phase_ == v1::JOB_PHASE_DONE || phase_ == v1::JOB_PHASE_FAILED;
  }
  v1::JobPhase phase() const { return phase_; }
  // Epoch of the plan in force; 0: none.
  uint64_t PlanEpoch();
  const std::string& message() const { return message_; }
  // Step and plan epoch of the saved weights.
  std::optional<int64_t> saved_step() const { return saved_step_; }
  uint64_t saved_epoch() const { return saved_epoch_; }
  int64_t recorded_step() const { return recorded_step_; }
  std::string Doing() const { return control_->Snapshot().message(); }

 protected:
  void LetGo() override;

 private:
  struct PlanCall {
    uint64_t min_epoch;
    int64_t until;
    MemberPlace member;
    Reply<v1::Plan> reply;
  };
  struct FinalRead {
    v1::Plan plan;
    int64_t step;
    int64_t version;
    int64_t until;
    std::vector<Block> blocks;  // of all shards
    Tensors weights;
  };

  void WatchLeases();
  void Round();
  void WriteManifests();
  void TakeOlderCheckpoint(const UnreadableCheckpoint& lost);
  void SaveWhenFinished();
  void ReadBlock(std::shared_ptr<FinalRead> read, size_t index);
  void Saved(const FinalRead& read, const absl::Status& status);
  void NextRound(int64_t micros);
  void AnswerPlanCalls();
  void TakeUpdates();
  void Idle(int64_t micros, std::function<void()> then);

  Context* const context_;
  const int64_t start_step_;
  std::unique_ptr<JobControl> control_;
  std::vector<PlanCall> plan_calls_;
  // As Coordinator::Ending.
  uint64_t ending_epoch_ = 0;
  int64_t ending_since_ = 0;
  int64_t recorded_step_;
  v1::JobPhase phase_ = v1::JOB_PHASE_WAITING;
  std::string message_;
  std::optional<int64_t> saved_step_;
  uint64_t saved_epoch_ = 0;
};

}  // namespace tributary::simulation
