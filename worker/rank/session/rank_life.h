// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/member/state/member_state.h"

namespace tributary {

// Decides what a rank does next, from its first step into a job to its end:
// when it needs a plan, which errors may mean that its plan is over, how long
// it waits for news of that, and with which status it ends. Pure: time and the
// coordinator's answers are arguments. RankDriver performs the acts.
class RankLife {
 public:
  struct Options {
    // Whether one rank's loss breaks the group of the others, who then ask for
    // a new plan.
    bool group_breaks = false;
    int64_t lease_micros = 0;  // of a place in the job
  };
  enum class Act {
    kWait,              // ask again after the coordinator's next answer
    kDeclareModel,      // then call Declared
    kGetPlan,           // of epoch() + 1 or later, then call Planned
    kTrain,             // under this plan, then call Trained
    kCancel,            // end the training, because the plan or job is over
    kReportUnreadable,  // wait for another plan, then call Replanned
    kGiveWeights,       // send the final weights again
    kFail,              // report status() to the coordinator and end with it
    kEnd,               // end with status()
  };

  explicit RankLife(const Options& options) : options_(options) {}

  // Returns the next act. While the last act goes on, this is kWait, or kCancel
  // when its plan or the job is over.
  Act Next(MemberState* state, int64_t now_micros);

  // The results of the acts.
  void Declared(const absl::Status& status);
  void Planned(const absl::Status& status, uint64_t epoch);
  // OK: all steps are done and, without servers, the weights are given.
  void Trained(const absl::Status& status);
  void Replanned(const absl::Status& status);

  uint64_t epoch() const { return epoch_; }  // of the newest plan; 0: none
  // With kGetPlan, kFail and kEnd: why the last plan or the rank's life ended.
  const absl::Status& status() const { return status_; }
  // True when the rank has finished all steps and waits for the other ranks.
  bool finished() const { return phase_ == Phase::kFinished; }

 private:
  enum class Phase {
    kDeclaring,
    kPlanning,
    kTraining,
    kUnreadable,  // the checkpoint that the plan starts from
    kFinished,
    kBroken,  // an error under the plan, which may be over
    kAwaitingNews,
    kEnding,
  };

  void Enter(Phase phase, const absl::Status& status = absl::OkStatus());
  Act Decide(MemberState* state, int64_t now_micros);
  // Decides in a phase in which a newer plan replaces the present one.
  Act DecideUnderPlan(MemberState* state, int64_t now_micros);
  Act DecideBroken(MemberState* state);
  Act AwaitNews(const MemberState& state, int64_t now_micros);

  Options options_;
  Phase phase_ = Phase::kDeclaring;
  bool acting_ = false;  // the last act goes on
  uint64_t epoch_ = 0;
  absl::Status status_;
  int64_t patience_micros_ = 0;
  // When the coordinator last named something that the job waits for.
  int64_t quiet_since_ = 0;
  int64_t quiet_answers_ = 0;  // -1: not known yet
};

}  // namespace tributary
