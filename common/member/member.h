// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/host/runtime.h"
#include "common/job/job_course.h"
#include "common/member/coordinator_client.h"
#include "common/member/declaration.h"
#include "common/member/member_display.h"
#include "common/member/member_options.h"
#include "common/member/result_sender.h"
#include "common/member/state/member_state.h"
#include "common/member/trace_sender.h"

namespace tributary {

// A server's or worker's side of the coordinator protocol: takes a place, keeps
// its lease by heartbeats on its own thread, and exchanges progress and orders.
// Thread-safe. Timeouts of calls are in real time; the injected clock only
// measures how long the coordinator has been silent.
//
// Calls of a worker: Join, DeclareModel, GetPlan, {BeginStep, ReportStep}...,
// ReportEvaluation.... Calls of a server: Join, {GetPlan,
// WaitForPlanAfter}... Either calls Fail(status) when it cannot continue.
class Member {
 public:
  static constexpr absl::Duration kHeartbeatTimeout = absl::Seconds(2);
  static constexpr absl::Duration kCallTimeout = absl::Seconds(30);

  using Options = MemberOptions;

  // Unavailable: the coordinator could not be reached in time. AlreadyExists:
  // every place is taken. FailedPrecondition: the job has ended.
  static absl::StatusOr<std::unique_ptr<Member>> Join(Options options);

  // Ends the heartbeats without a message. A member that leaves early without
  // Finish or Fail counts as lost when its lease expires.
  ~Member();

  uint32_t index() const { return place_.index(); }  // shard or rank
  uint64_t incarnation() const { return place_.incarnation(); }
  uint64_t job_id() const { return place_.job_id(); }
  absl::Duration lease() const { return absl::Milliseconds(place_.lease_ms()); }
  const v1::JobSpec& job() const { return place_.job(); }
  // The step of the checkpoint from which the job continues; 0: from none.
  int64_t start_step() const { return place_.start_step(); }
  // How the job had taken its training rows when this member joined; empty:
  // unknown. InvalidArgument: the coordinator's answer contradicts itself.
  absl::StatusOr<DataCourse> Course() const;
  // This process's proof with the ticket of its place, for calls to servers.
  CallerProof proof() const;
  // The key with which a server checks the tickets of its callers.
  const std::string& job_key() const { return place_.job_key(); }
  // The key of the checksums of the job's checkpoints; empty: no keyed ones.
  const std::string& checkpoint_key() const { return place_.checkpoint_key(); }

  // Reports what this worker's bits depend on (kernels/device.h, ArithmeticOf).
  // True: an earlier process in this place used another arithmetic, so its
  // contributions to a step that is still open may differ in bits from this
  // one's. FailedPrecondition: the place is lost.
  absl::StatusOr<bool> DeclareArithmetic(const std::string& arithmetic);

  // FailedPrecondition when another worker has declared a different model.
  absl::Status DeclareModel(const Declaration& declaration);

  // Waits until every member has joined, the model is declared and there is a
  // plan of at least this epoch, as long as the coordinator answers heartbeats.
  // Aborted: the job has failed. FailedPrecondition: it is done.
  // DeadlineExceeded, after `timeout`, names what is missing. PermissionDenied:
  // the plan's checkpoints are not below checkpoint_roots. Otherwise end().
  absl::StatusOr<v1::Plan> GetPlan(
      uint64_t min_epoch, absl::Duration timeout = absl::InfiniteDuration());

  // This process starts, or continues under a newer plan, after `step` steps:
  // the plan's start step, or the step that a previous process in this place
  // reached. The previous process may have begun steps up to `begun`. The
  // coordinator settles no stop step before it knows this.
  void StartAt(uint64_t plan_epoch, int64_t step, int64_t begun = 0);

  // OK: there is a newer plan than `epoch`. DeadlineExceeded: none came within
  // `timeout`, or wanted_cut().step is no longer `known_cut`. Otherwise end(),
  // or Cancelled when the job is done.
  absl::Status WaitForPlanAfter(uint64_t epoch, absl::Duration timeout,
                                int64_t known_cut = 0);
  // As in MemberState.
  WantedCut wanted_cut() const;
  void ReportCut(int64_t step);
  // As in MemberState.
  bool TakeAskedCheckpoint(int64_t step);

  // Waits for the decision after an evaluation, as AwaitEvaluation in
  // coordinator_service.proto. Aborted: the plan has ended. Otherwise end().
  absl::StatusOr<v1::AwaitEvaluationResponse> AwaitEvaluation(
      uint64_t plan_epoch, int64_t step);

  // Calls `decide` at once and after each answer of the coordinator, until it
  // returns true. It must do so when the job has ended for this member
  // (MemberState::end) or is done. Called with a lock held.
  using Decide = std::function<bool(MemberState& state, int64_t now_micros)>;
  void Follow(const Decide& decide);

  // Call it before each step (from 1, in order; a worker that fell behind skips
  // some). Blocks only while the coordinator determines the step at which all
  // workers stop, or while 65536 reports wait to be sent, and only as long as
  // the coordinator answers heartbeats.
  //   OK           begin the step
  //   Cancelled    the job stops before this step: evaluate, finish, exit 0
  //   FailedPrecondition  there is a new plan: fetch it
  //   otherwise    end() of the job: exit 1
  // before_wait: called without a lock before a wait; its error is returned.
  using BeforeWait = std::function<absl::Status()>;
  absl::Status BeginStep(int64_t step, const BeforeWait& before_wait = nullptr);

  // Reports that the program takes no further step. Waits as BeginStep does.
  //   OK           after that step: finish (MemberState::Finish)
  //   OutOfRange   another rank has begun a later step, which this one lacks
  //   FailedPrecondition  there is a new plan: fetch it
  //   otherwise    end() of the job
  absl::Status EndProgram(const BeforeWait& before_wait = nullptr);

  // Queues the report of a step, from 1 without gaps, for the next heartbeat.
  void ReportStep(const v1::StepReport& report);

  // Reports a checkpoint file that this member wrote, or why there is none.
  void ReportCheckpoint(const v1::CheckpointReport& report);

  // The part of a heartbeat that `tributary status` shows.
  MemberDisplay& display() { return display_; }

  // Sends `payload` to the group of these ranks, which include this one, under
  // this plan. With `parts`, rank r also gets parts[r], after the payload.
  // Returns what each rank has sent to this one, in the order of `ranks`.
  // DeadlineExceeded names the missing ranks; Aborted: the plan has ended.
  absl::StatusOr<std::vector<std::string>> Exchange(
      uint64_t plan_epoch, const std::string& group,
      const std::vector<int>& ranks, std::string payload,
      absl::Duration timeout, const std::vector<std::string>& parts = {});

  // Sends what this worker has computed.
  ResultSender& results() { return results_; }

  // Records the steps that the job traces; null: it traces none. The heartbeats
  // carry the events.
  TraceRecorder* trace() { return trace_.get(); }

  // Tries once, for at most two seconds, to report why this process is about to
  // end. The job then fails with this message.
  void Fail(const absl::Status& why);

  // Gives the place back, so that another process can take it at once: tries
  // once, for at most two seconds, and sends no heartbeat after that. The
  // process must end then.
  void Leave(const std::string& why);

  v1::JobPhase phase() const;
  // OK while the job lives and when it is done. Aborted: it has failed, with
  // the reason. Unavailable: the coordinator is lost. FailedPrecondition: the
  // coordinator has given this place to another process.
  absl::Status end() const;

  // end(), or Unavailable when the coordinator is silent but does not count as
  // lost yet.
  absl::Status Contact() const;

 private:
  Member(Options options, std::unique_ptr<CoordinatorClient> client,
         v1::RegisterRequest registration, v1::RegisterResponse place);

  void Beat();  // the heartbeat thread
  v1::HeartbeatRequest MakeRequestLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool WakeLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends one heartbeat and handles the answer; false when it was the last.
  bool BeatOnce();

  const Options options_;
  const std::unique_ptr<CoordinatorClient> client_;
  const v1::RegisterRequest registration_;  // the request that took the place
  const v1::RegisterResponse place_;
  MemberDisplay display_;
  ResultSender results_;
  const std::unique_ptr<TraceRecorder> trace_;  // or null
  TraceSender trace_sender_;  // used if trace_ is set, by the heartbeat thread

  mutable absl::Mutex mu_;
  MemberState state_ ABSL_GUARDED_BY(mu_);
  bool leaving_ ABSL_GUARDED_BY(mu_) = false;

  Thread thread_;
};

}  // namespace tributary
