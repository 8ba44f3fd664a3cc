// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/member/member.h"
#include "tributary/v1/plan.pb.h"
#include "worker/rank/session/rank_life.h"

namespace tributary {

// The parts of RankLife's acts that differ between built-in models and
// programs.
class DrivenRank {
 public:
  virtual ~DrivenRank() = default;
  // Opens what the rank trains with, and declares it to the coordinator.
  virtual absl::Status Declare() = 0;
  // Ends what belongs to the present plan, if there is one.
  virtual void EndPlan() = 0;
  // Sends the final weights of the present plan.
  virtual absl::Status GiveWeights() = 0;
  // Not OK when the rank must end. Checked between two waits.
  virtual absl::Status Cancelled() const { return absl::OkStatus(); }
};

// Performs the acts of RankLife for a rank of any kind, except the training
// itself. For one thread.
class RankDriver {
 public:
  struct Options {
    RankLife::Options life;
    // How long one wait for a plan lasts. Then Cancelled is checked.
    absl::Duration plan_wait = absl::InfiniteDuration();
  };

  // member and rank must outlive the driver.
  RankDriver(const Options& options, Member* member, DrivenRank* rank)
      : options_(options),
        member_(*member),
        rank_(*rank),
        life_(options.life) {}

  // Returns true once there is a plan to train under, and false once the job is
  // over for this rank. Errors are those of Cancelled.
  absl::StatusOr<bool> Follow();
  // Call this when the training under the plan has ended with `status`. OK: all
  // steps are done and, without servers, the weights are given.
  void Trained(const absl::Status& status);

  const v1::Plan& plan() const { return plan_; }
  // The status with which this rank ends, once the job is over.
  const absl::Status& status() const { return life_.status(); }

 private:
  void TakePlan();
  absl::StatusOr<v1::Plan> GetPlan();
  void GiveWeightsAgain();

  const Options options_;
  Member& member_;
  DrivenRank& rank_;
  RankLife life_;
  v1::Plan plan_;
};

}  // namespace tributary
