// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/service/job_control.h"
#include "coordinator/service/job_rounds.h"
#include "tests/simulation/job/context.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary::simulation {

// The coordinator's process: JobControl and the threads around it, among them
// JobRounds, whose files are on the simulated disk.
class SimulatedCoordinator final : public Process, private JobFiles {
 public:
  static constexpr char kAddress[] = "coordinator:1";

  // The constructor fills in `clock`.
  SimulatedCoordinator(int64_t pid, Context* context,
                       JobControl::Options options);

  void Start();

  JobControl& control() { return *control_; }
  // Answers when there is such a plan, or after the time that the request
  // names.
  void GetPlan(const v1::GetPlanRequest& request, const MemberPlace& member,
               Reply<v1::Plan> reply);

  bool over() const {
    return phase_ == v1::JOB_PHASE_DONE || phase_ == v1::JOB_PHASE_FAILED;
  }
  v1::JobPhase phase() const { return phase_; }
  // Epoch of the plan in force; 0 if no plan is.
  uint64_t PlanEpoch();
  const std::string& message() const { return message_; }
  // Step and plan epoch of the saved weights.
  std::optional<int64_t> saved_step() const { return saved_step_; }
  uint64_t saved_epoch() const { return saved_epoch_; }
  int64_t recorded_step() const { return recorded_step_; }
  std::string Doing() const { return control_->Snapshot().message(); }

 protected:
  void LetGo() override { context_->fibers.Kill(this); }

 private:
  // Threads.
  void WatchLeases();
  void TakeUpdates();

  void RemoveFailed(const std::string& folder) override;
  absl::Status WriteManifest(const PendingManifest& pending) override;
  void RevokeManifest(const PendingManifest& pending) override;
  void ManifestWritten(const PendingManifest& pending, bool saved) override;
  absl::StatusOr<OlderCheckpoint> GoBackBefore(
      const UnreadableCheckpoint& lost) override;
  absl::StatusOr<FinalWeights> ReadWeights(
      const v1::Plan& plan, int64_t step,
      const std::function<bool()>& cancelled) override;
  absl::Status SaveWeights(const FinalWeights& weights) override;
  void LeaveWholeCheckpoints(const std::string&) override {}

  Context* const context_;
  const int64_t start_step_;
  std::unique_ptr<JobControl> control_;
  std::optional<JobRounds> rounds_;
  int64_t recorded_step_;
  v1::JobPhase phase_ = v1::JOB_PHASE_WAITING;
  std::string message_;
  uint64_t read_epoch_ = 0;  // of the plan whose weights were read last
  std::optional<int64_t> saved_step_;
  uint64_t saved_epoch_ = 0;
};

}  // namespace tributary::simulation
