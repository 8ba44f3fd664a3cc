#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// What a member knows of its job, what it still has to say and whether its next
// step may begin. State in, answer out: no lock, no wait, time passed in.
class MemberState {
 public:
  // Steps in one heartbeat: far below gRPC's limit of 4 MiB a message.
  static constexpr size_t kStepsPerHeartbeat = 4096;
  // Steps that may wait to be reported before the next must not begin.
  static constexpr size_t kMaxPendingSteps = 65536;
  // Steps that were taken and are kept: what a coordinator has taken but not
  // recorded when it dies is told to the one that takes over.
  static constexpr size_t kMaxKeptSteps = 4096;
  // Reports of checkpoints that may wait: while the coordinator is away.
  static constexpr size_t kMaxPendingCheckpoints = 64;

  enum class Gate {
    kOpen,     // the step may begin
    kWait,     // ask again after the next heartbeat
    kStop,     // the job stops before this step: evaluate, finish
    kNewPlan,  // fetch it: this one's steps do not count any more
    kEnded     // see end()
  };

  // `lost_micros`: without an answer for so long the coordinator is given up.
  MemberState(v1::Role role, const v1::RegisterResponse& place,
              std::string coordinator, int64_t lost_micros, int64_t now_micros);

  // Steps must be asked for in order, each more than the last begun.
  Gate Check(int64_t step) const;
  void Begin(int64_t step) {
    begun_step_ = step;
    started_ = true;
  }
  // A new plan, or the first; every member was there. Reports of an earlier one
  // that have not been taken are dropped: their steps come again.
  void OnPlan(uint64_t plan_epoch, int64_t start_step);
  // This process goes on after `step` steps of the plan; of those up to `begun`
  // a process before it has sent a part.
  void StartAt(uint64_t plan_epoch, int64_t step, int64_t begun = 0);
  int64_t begun_step() const { return begun_step_; }

  void ReportStep(const v1::StepReport& report) { pending_.push_back(report); }
  // After this nothing may begin or be reported.
  void Finish() { finishing_ = true; }
  bool finish_acknowledged() const { return finish_acknowledged_; }
  // The coordinator needs the final weights (again); GiveWeights: they go.
  bool wants_weights() const { return wants_weights_; }
  void GiveWeights() { wants_weights_ = false; }

  // True when something should be told without waiting for the interval.
  bool Urgent() const;

  // What to send now. Fields that the state does not know (waiting_for, bytes,
  // memory, device) are left to the caller.
  v1::HeartbeatRequest NextHeartbeat();
  // A coordinator of a lower term than one that has answered before has been
  // replaced: its answer counts as none. One of a higher term has taken over:
  // it takes nothing of this request, and the next tells it the kept steps
  // again.
  void OnAnswer(const v1::HeartbeatRequest& request,
                const v1::HeartbeatResponse& answer, int64_t now_micros);
  // Unavailable and ResourceExhausted are borne until `lost_micros`; any other
  // error ends the job.
  void OnError(const absl::Status& error, int64_t now_micros);

  uint64_t term() const { return term_; }  // the highest heard

  // Unavailable: "coordinator HOST:PORT has not answered for 6.1 s".
  absl::Status Silence(int64_t now_micros) const;
  // How long the coordinator has said nothing.
  int64_t silent_micros(int64_t now_micros) const {
    return now_micros - last_answer_micros_;
  }
  // A server's file of a checkpoint; sent until taken, in the order of steps.
  // When too many wait the oldest failure, or else the oldest file, is left
  // out: the coordinator knows by the later ones that it will not come.
  void ReportCheckpoint(const v1::CheckpointReport& report);
  // This worker's group cannot go on under this plan; told until there is
  // another.
  void BreakGroup(uint64_t plan_epoch, std::string why) {
    broken_group_epoch_ = plan_epoch;
    broken_group_ = std::move(why);
    untold_break_ = true;
  }
  // The reason to wait that the coordinator named last; empty: none.
  const std::string& waits_for() const { return waits_for_; }
  // How often it has answered.
  int64_t answers() const { return answers_; }
  // Whether the plan that this process works on is over.
  bool plan_is_over() const {
    // Who has asked for no plan works on the first.
    return newest_plan_ > std::max<uint64_t>(1, plan_epoch_);
  }
  // Of the coordinator's newest plan; 0: it has not said.
  uint64_t newest_plan() const { return newest_plan_; }
  // Ranks of the job that the coordinator wants this worker to take over.
  const std::vector<uint32_t>& adopt_ranks() const { return adopt_ranks_; }

  v1::JobPhase phase() const { return phase_; }
  std::optional<int64_t> stop_step() const { return stop_step_; }
  // OK while the job lives and when it is done. Aborted: it failed, this is
  // why. Unavailable: the coordinator is lost. FailedPrecondition: the
  // coordinator has given the place up.
  const absl::Status& end() const { return end_; }

 private:
  // Drops the reports of the request that the coordinator has taken.
  void Settle(const v1::HeartbeatRequest& request,
              const v1::HeartbeatResponse& answer);
  // Holds its next step back for the coordinator to say where the job stops;
  // which step that is it must know itself.
  bool Paused() const {
    return phase_ == v1::JOB_PHASE_STOPPING && !stop_step_ && started_;
  }

  void DropTaken(const v1::HeartbeatRequest& request, uint32_t taken);

  const v1::Role role_;
  const uint32_t index_;
  const uint64_t incarnation_;
  const uint64_t job_id_;
  const uint32_t num_workers_;
  const std::string coordinator_;
  const int64_t lost_micros_;
  uint64_t term_;  // the highest heard

  v1::JobPhase phase_ = v1::JOB_PHASE_WAITING;
  std::optional<int64_t> stop_step_;
  absl::Status end_;
  int64_t last_answer_micros_;

  uint64_t plan_epoch_ = 0;
  uint64_t newest_plan_ = 0;
  int64_t start_step_ = 0;
  int64_t begun_step_ = 0;
  int64_t begun_before_ = 0;  // by a process in this place
  bool heard_ = false;  // of the job's phase, since this process has its place
  bool started_ = false;                          // what is begun is known
  std::deque<v1::StepReport> pending_;            // not yet taken
  std::deque<v1::StepReport> kept_;               // taken, of this plan
  std::deque<v1::CheckpointReport> checkpoints_;  // not yet taken
  std::vector<uint32_t> adopt_ranks_;
  bool untold_checkpoint_ = false;
  uint64_t broken_group_epoch_ = 0;  // 0: it works
  std::string broken_group_;
  bool untold_break_ = false;
  std::string waits_for_;
  int64_t answers_ = 0;
  bool told_paused_ = false;
  bool stalled_ = false;  // the coordinator took none of the steps sent
  bool finishing_ = false;
  bool finish_acknowledged_ = false;
  bool wants_weights_ = false;
};

}  // namespace tributary
