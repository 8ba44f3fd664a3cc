#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/parameter_spec.h"
#include "common/member/coordinator_client.h"
#include "common/member/member_options.h"
#include "common/member/member_state.h"

namespace tributary {

// A server's or worker's side of the coordinator protocol: takes a place, keeps
// its lease by heartbeats on a thread of its own, carries progress there and
// orders back. Safe for any number of threads. Timeouts of calls are real time;
// the clock says how long the coordinator has been silent.
// A worker:  Join, DeclareModel, GetPlan, { BeginStep, ReportStep }...,
//            ReportEvaluation..., Finish.
// A server:  Join, GetPlan, WaitForEnd.
// Either, when it cannot go on: Fail(status).
class Member {
 public:
  using Options = MemberOptions;

  // What a worker finds out from job and data; the same on every worker.
  struct Declaration {
    ParameterSpecs parameters;  // in forward order
    int64_t total_steps = 0;
    int64_t steps_per_epoch = 0;
    uint32_t data_checksum = 0;  // 0: generated
  };

  // Unavailable: the coordinator was not there in time. AlreadyExists: every
  // place is taken. FailedPrecondition: the job has ended.
  static absl::StatusOr<std::unique_ptr<Member>> Join(Options options);

  // Ends the heartbeats without a word: a member that leaves before the end
  // without Finish or Fail is missed when its lease runs out.
  ~Member();

  uint32_t index() const { return place_.index(); }  // shard or rank
  uint64_t incarnation() const { return place_.incarnation(); }
  uint64_t job_id() const { return place_.job_id(); }
  absl::Duration lease() const { return absl::Milliseconds(place_.lease_ms()); }
  const v1::JobSpec& job() const { return place_.job(); }

  // Tells what this worker's bits depend on (kernels/device.h, ArithmeticOf).
  // True: an earlier process in this place computed with another arithmetic, so
  // what it gave to a step that is still open may come out with other bits.
  // FailedPrecondition: the place is lost.
  absl::StatusOr<bool> DeclareArithmetic(const std::string& arithmetic);

  // FailedPrecondition when another worker has declared another model.
  absl::Status DeclareModel(const Declaration& declaration);

  // Waits until every member is there and the model is declared, and for a plan
  // of at least this epoch, as long as the coordinator is heard. Aborted: the
  // job has failed; FailedPrecondition: it is done; DeadlineExceeded, after
  // `timeout`, says who is missing; otherwise end().
  absl::StatusOr<v1::Plan> GetPlan(
      uint64_t min_epoch, absl::Duration timeout = absl::InfiniteDuration());

  // This process begins, or goes on with a newer plan, after `step` steps:
  // where the plan says, or where a process before it has come to, which may
  // have `begun` more. The coordinator settles no stop before it knows.
  void StartAt(uint64_t plan_epoch, int64_t step, int64_t begun = 0);

  // OK: there is a newer plan than `epoch`. DeadlineExceeded: not in `timeout`.
  // Otherwise end(), or Cancelled when the job is done.
  absl::Status WaitForPlanAfter(uint64_t epoch, absl::Duration timeout);

  // The same after an error that the end of the plan may have caused: waits as
  // long as the coordinator names something that the job waits for, and
  // `patience` longer. DeadlineExceeded: it names nothing.
  absl::Status WaitForNews(uint64_t epoch, absl::Duration patience);

  // This worker's group cannot go on under this plan: asks for another.
  void BreakGroup(uint64_t plan_epoch, const absl::Status& why);

  // Call before each step (from 1, in order; a worker that was left behind
  // skips some). Blocks only while the coordinator looks for the step at which
  // all workers stop, or 65536 reports wait for it, as long as it is heard.
  //   OK           begin it
  //   Cancelled    the job stops before this step: evaluate, Finish, exit 0
  //   FailedPrecondition  there is a new plan: fetch it
  //   otherwise    end() of the job: exit 1
  absl::Status BeginStep(int64_t step);

  // Cheap: the heartbeat carries it. In order, from 1, without gaps.
  void ReportStep(const v1::StepReport& report);

  // For `tributary status`: a sentence, empty when it does not wait; a server
  // says the ranks as well.
  void SetWaitingFor(std::string what, std::vector<uint32_t> ranks = {});
  std::string waiting_for() const;
  // A server's file of a checkpoint, or why there is none.
  void ReportCheckpoint(const v1::CheckpointReport& report);

  void SetBytes(uint64_t sent, uint64_t received);
  // What it computes on: "cpu", "cuda: NVIDIA H200".
  void SetDevice(std::string device);

  // Gives `payload` to the group of these ranks, this one among them, under
  // this plan and returns everybody's, in the ranks' order. DeadlineExceeded
  // says which are missing; Aborted: the plan is over.
  absl::StatusOr<std::vector<std::string>> Exchange(
      uint64_t plan_epoch, const std::string& group,
      const std::vector<int>& ranks, std::string payload,
      absl::Duration timeout);

  // In a job without servers: gives the weights of a parameter of the plan
  // after the last step.
  absl::Status PutWeights(uint64_t plan_epoch, int64_t step, int parameter,
                          const std::vector<float>& tensor);

  // This worker's part of the evaluation of the weights after `step` steps.
  absl::Status ReportEvaluation(int64_t step, int64_t epoch,
                                const v1::EvaluationPart& part);

  // Tells that nothing follows. Returns when every report has arrived; else
  // DeadlineExceeded, FailedPrecondition (a new plan) or end() of the job.
  absl::Status Finish(absl::Duration timeout = absl::InfiniteDuration());

  // Tells, once and for at most two seconds, why this process is about to end:
  // the job fails with this sentence.
  void Fail(const absl::Status& why);

  v1::JobPhase phase() const;
  // OK while the job lives and when it is done. Aborted: it failed, this is
  // why. Unavailable: the coordinator is lost. FailedPrecondition: the
  // coordinator has given this place up.
  absl::Status end() const;

  // end(), or Unavailable when the coordinator is silent, though not yet for so
  // long that it counts as lost.
  absl::Status Contact() const;
  // After Finish: waits until the job is done (OK) or cannot be, for this plan:
  // Cancelled when there is a newer one, otherwise end(). Ends at the latest
  // when the coordinator counts as lost. Calls `give_weights` when one that has
  // taken over needs the weights again.
  absl::Status WaitForDone(uint64_t plan_epoch,
                           const std::function<absl::Status()>& give_weights);

  // OK: the job is done. DeadlineExceeded: it still lives. Otherwise end().
  absl::Status WaitForEnd(absl::Duration timeout);

 private:
  Member(Options options, std::unique_ptr<CoordinatorClient> client,
         v1::RegisterRequest registration, v1::RegisterResponse place);

  void Beat();  // the thread
  v1::HeartbeatRequest MakeRequestLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool WakeLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return leaving_ || state_.Urgent();
  }
  // To a coordinator that has taken over.
  void TellEvaluationAgain();
  // One heartbeat there and back; false when it was the last.
  bool BeatOnce();

  const Options options_;
  const std::unique_ptr<CoordinatorClient> client_;
  const v1::RegisterRequest registration_;  // with which it took its place
  const v1::RegisterResponse place_;

  mutable absl::Mutex mu_;
  MemberState state_ ABSL_GUARDED_BY(mu_);
  std::string waiting_for_ ABSL_GUARDED_BY(mu_);
  std::vector<uint32_t> waiting_for_ranks_ ABSL_GUARDED_BY(mu_);
  std::string device_ ABSL_GUARDED_BY(mu_);
  uint64_t bytes_sent_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t bytes_received_ ABSL_GUARDED_BY(mu_) = 0;
  std::optional<v1::ReportEvaluationRequest> evaluation_ ABSL_GUARDED_BY(mu_);
  bool leaving_ ABSL_GUARDED_BY(mu_) = false;

  std::thread thread_;
};

}  // namespace tributary
