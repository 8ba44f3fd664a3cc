// SPDX-License-Identifier: Apache-2.0
#include "common/member/member.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files/folder_roots.h"
#include "common/host/clock_id.h"
#include "common/host/steady_waits.h"
#include "common/member/take_place.h"
#include "common/status/cause.h"
#include "common/status/status_macros.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

// Duration of one call for a plan. After a call without a plan, the wait is
// logged and the call is repeated.
constexpr absl::Duration kPlanChunk = absl::Seconds(30);
constexpr absl::Duration kSilence = absl::Seconds(5);  // reported after this

// Asks `decide` at once and, after before_wait, until it decides.
template <typename Decide>
absl::Status Await(Member* member, const Decide& decide,
                   const Member::BeforeWait& before_wait) {
  std::optional<absl::Status> decided;
  bool waits = before_wait == nullptr;
  const auto ask = [&](MemberState& state, int64_t) {
    decided = decide(state);
    return decided || !waits;
  };
  member->Follow(ask);
  if (decided) return *decided;
  waits = true;
  TRIBUTARY_RETURN_IF_ERROR(before_wait());
  member->Follow(ask);
  return *decided;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Member>> Member::Join(Options options) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<CoordinatorClient> client,
      CoordinatorClient::Create({.address = options.coordinator,
                                 .clock = options.clock,
                                 .proof = options.proof,
                                 .simulated = options.simulated}));
  v1::RegisterRequest registration = MakeRegistration(options);
  TRIBUTARY_ASSIGN_OR_RETURN(v1::RegisterResponse place,
                             TakePlace(options, registration, *client));
  if (place.heartbeat_ms() == 0 || place.lease_ms() <= place.heartbeat_ms()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "coordinator ", options.coordinator, " wants a heartbeat every ",
        place.heartbeat_ms(), " ms and a lease of ", place.lease_ms(),
        " ms; the first must be positive and the second longer"));
  }
  client->SetTicket(place.ticket());
  return std::unique_ptr<Member>(
      new Member(std::move(options), std::move(client), std::move(registration),
                 std::move(place)));
}

Member::Member(Options options, std::unique_ptr<CoordinatorClient> client,
               v1::RegisterRequest registration, v1::RegisterResponse place)
    : options_(std::move(options)),
      client_(std::move(client)),
      registration_(std::move(registration)),
      place_(std::move(place)),
      results_(client_.get(), place_),
      trace_(MakeTraceRecorder(place_.job())),
      trace_sender_(trace_.get(), MonotonicClockId()),
      state_(options_.role, place_, options_.coordinator,
             absl::ToInt64Microseconds(options_.timeouts.lost),
             options_.clock->NowMicros()),
      thread_([this] { Beat(); }) {}

Member::~Member() {
  {
    absl::MutexLock lock(&mu_);
    leaving_ = true;
  }
  client_->Cancel();
  thread_.join();
}

void Member::Beat() {
  const absl::Duration interval = absl::Milliseconds(place_.heartbeat_ms());
  const auto wake = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return WakeLocked();
  };
  while (BeatOnce()) {
    absl::MutexLock lock(&mu_);
    AwaitFor(&mu_, absl::Condition(&wake), interval);
    if (leaving_) break;
  }
  results_.Close();
  {
    absl::MutexLock lock(&mu_);
    if (leaving_) return;
  }
  if (options_.callbacks.on_end) options_.callbacks.on_end(end());
}

bool Member::BeatOnce() {
  v1::HeartbeatRequest request;
  {
    absl::MutexLock lock(&mu_);
    request = MakeRequestLocked();
  }
  const auto& callback = options_.callbacks.bring_up_to_date;
  if (callback) callback(&request);
  const int64_t sent = options_.clock->NowMicros();
  if (trace_) trace_sender_.Fill(&request, sent);
  const absl::StatusOr<v1::HeartbeatResponse> answer =
      client_->Heartbeat(request, kHeartbeatTimeout);
  // The answer of a new coordinator counts only after it has this member's
  // evaluations: until then it must not receive the steps that follow them.
  const bool counts = !answer.ok() || answer->phase() == v1::JOB_PHASE_DONE ||
                      answer->phase() == v1::JOB_PHASE_FAILED ||
                      results_.Follow(answer->term()).ok();
  const int64_t now = options_.clock->NowMicros();
  if (trace_ && answer.ok()) trace_sender_.OnAnswer(*answer, sent, now);
  uint64_t new_plan = 0;
  std::vector<uint32_t> adopt;
  {
    absl::MutexLock lock(&mu_);
    if (leaving_) return false;
    const uint64_t known_plan = state_.newest_plan();
    if (!counts) {
      state_.OnContact(now);
      return true;
    }
    state_.OnResult(request, answer, now);
    if (state_.over()) return false;
    if (state_.newest_plan() > known_plan) new_plan = state_.newest_plan();
    adopt = state_.adopt_ranks();
  }
  if (new_plan > 1 && options_.callbacks.on_new_plan)
    options_.callbacks.on_new_plan(new_plan);
  if (!adopt.empty() && options_.callbacks.on_adopt)
    options_.callbacks.on_adopt(adopt);
  return true;
}

v1::HeartbeatRequest Member::MakeRequestLocked() {
  v1::HeartbeatRequest request = state_.NextHeartbeat();
  display_.Fill(&request);
  return request;
}

absl::StatusOr<DataCourse> Member::Course() const {
  return CourseFromProto(place_.course());
}

CallerProof Member::proof() const {
  return options_.proof.WithTicket(place_.ticket());
}

bool Member::WakeLocked() const {
  return leaving_ || state_.Urgent() || (trace_ && trace_sender_.Urgent());
}

// Repeats the registration with the arithmetic, which is not known at the first
// registration, because the device depends on both the job and the rank.
absl::StatusOr<bool> Member::DeclareArithmetic(const std::string& arithmetic) {
  v1::RegisterRequest request = registration_;
  request.set_wanted_index(index());
  request.set_arithmetic(arithmetic);
  TRIBUTARY_ASSIGN_OR_RETURN(const v1::RegisterResponse again,
                             client_->Register(request, kCallTimeout));
  if (again.incarnation() != incarnation()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the lease of worker ", index(), " as incarnation ",
                     incarnation(), " is lost"));
  }
  return again.recomputes();
}

absl::Status Member::DeclareModel(const Declaration& declaration) {
  v1::DeclareModelRequest request = declaration.ToRequest();
  request.set_rank(index());
  request.set_incarnation(incarnation());
  return client_->DeclareModel(request, kCallTimeout);
}

void Member::StartAt(uint64_t plan_epoch, int64_t step, int64_t begun) {
  absl::MutexLock lock(&mu_);
  state_.StartAt(plan_epoch, step, begun);
}

absl::StatusOr<v1::Plan> Member::GetPlan(uint64_t min_epoch,
                                         absl::Duration timeout) {
  display_.SetWaitingFor(
      WaitFor(min_epoch <= 1 ? "the job's plan" : "a new plan, after a loss"));
  const int64_t start = options_.clock->NowMicros();
  absl::Status end;
  absl::StatusOr<v1::Plan> plan;
  for (absl::Duration left = timeout;;) {
    plan = client_->GetPlan(min_epoch, std::min(left, kPlanChunk));
    left = timeout - absl::Microseconds(options_.clock->NowMicros() - start);
    if (plan.ok() || !MayPass(plan.status()) || left <= absl::ZeroDuration()) {
      break;
    }
    if (end = this->end(); !end.ok()) break;
    if (phase() == v1::JOB_PHASE_DONE) {
      end = absl::FailedPreconditionError("the job is done");
      break;
    }
    spdlog::info("still waits: {}", std::string(plan.status().message()));
  }
  display_.SetWaitingFor({});
  absl::MutexLock lock(&mu_);
  if (!end.ok()) return end;
  if (!plan.ok()) return plan;
  for (const std::string& folder :
       {plan->checkpoint_directory(), plan->restore_from()}) {
    if (folder.empty()) continue;
    TRIBUTARY_RETURN_IF_ERROR(
        CheckBelow(folder, options_.checkpoint_roots, "--checkpoint-root"));
  }
  state_.OnPlan(plan->epoch(), plan->start_step());
  return plan;
}

absl::Status Member::WaitForPlanAfter(uint64_t epoch, absl::Duration timeout,
                                      int64_t known_cut) {
  absl::MutexLock lock(&mu_);
  const auto changed = [this, epoch,
                        known_cut]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !absl::IsDeadlineExceeded(state_.NewsAfter(epoch)) ||
           state_.wanted_cut().step != known_cut;
  };
  AwaitFor(&mu_, absl::Condition(&changed), timeout);
  return state_.NewsAfter(epoch);
}

WantedCut Member::wanted_cut() const {
  absl::MutexLock lock(&mu_);
  return state_.wanted_cut();
}

void Member::ReportCut(int64_t step) {
  absl::MutexLock lock(&mu_);
  state_.ReportCut(step);
}

bool Member::TakeAskedCheckpoint(int64_t step) {
  absl::MutexLock lock(&mu_);
  return state_.TakeAskedCheckpoint(step);
}

absl::StatusOr<v1::AwaitEvaluationResponse> Member::AwaitEvaluation(
    uint64_t plan_epoch, int64_t step) {
  v1::AwaitEvaluationRequest request;
  request.set_rank(index());
  request.set_incarnation(incarnation());
  request.set_plan_epoch(plan_epoch);
  request.set_step(step);
  display_.SetWaitingFor(
      WaitFor(absl::StrCat("the evaluation after step ", step)));
  while (true) {
    absl::StatusOr<v1::AwaitEvaluationResponse> answer =
        client_->AwaitEvaluation(request, kPlanChunk);
    if (!answer.ok() && MayPass(answer.status())) {
      TRIBUTARY_RETURN_IF_ERROR(end());
      continue;
    }
    display_.SetWaitingFor({});
    if (answer.ok() && answer->checkpoint()) {
      absl::MutexLock lock(&mu_);
      state_.SetBest(step);
    }
    return answer;
  }
}

void Member::Follow(const Decide& decide) {
  absl::MutexLock lock(&mu_);
  // This wait needs no deadline, because the heartbeats have one.
  while (!decide(state_, options_.clock->NowMicros())) {
    const auto heard = [this, answers = state_.contact().answers()]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
                             return state_.contact().answers() != answers ||
                                    !state_.end().ok();
                           };
    AwaitFor(&mu_, absl::Condition(&heard), absl::InfiniteDuration());
  }
}

absl::Status Member::BeginStep(int64_t step, const BeforeWait& before_wait) {
  const auto begin = [step](MemberState& state) -> std::optional<absl::Status> {
    if (step > state.begun_step()) return state.TryToBegin(step);
    return absl::InvalidArgumentError(absl::StrCat(
        "the next step to begin is ", state.begun_step() + 1, ", got ", step));
  };
  return Await(this, begin, before_wait);
}

absl::Status Member::EndProgram(const BeforeWait& before_wait) {
  const auto end = [](MemberState& state) { return state.TryToEnd(); };
  return Await(this, end, before_wait);
}

void Member::ReportStep(const v1::StepReport& report) {
  absl::MutexLock lock(&mu_);
  state_.ReportStep(report);
}

void Member::ReportCheckpoint(const v1::CheckpointReport& report) {
  absl::MutexLock lock(&mu_);
  state_.ReportCheckpoint(report);
}

absl::StatusOr<std::vector<std::string>> Member::Exchange(
    uint64_t plan_epoch, const std::string& group,
    const std::vector<int>& ranks, std::string payload, absl::Duration timeout,
    const std::vector<std::string>& parts) {
  v1::ExchangeRequest request;
  request.set_rank(index());
  request.set_incarnation(incarnation());
  request.set_plan_epoch(plan_epoch);
  request.set_group(group);
  request.mutable_ranks()->Add(ranks.begin(), ranks.end());
  request.set_payload(std::move(payload));
  request.mutable_parts()->Add(parts.begin(), parts.end());
  display_.SetWaitingFor(WaitFor(absl::StrCat("the others in group ", group)));
  absl::StatusOr<v1::ExchangeResponse> all = client_->Exchange(
      std::move(request), timeout, [this](const absl::Status& waits) {
        v1::ErrorDetail detail = DetailOf(waits);
        if (detail.has_wait()) {
          display_.SetWaitingFor(std::move(*detail.mutable_wait()));
        }
      });
  display_.SetWaitingFor({});
  TRIBUTARY_RETURN_IF_ERROR(all.status());
  return std::vector<std::string>(all->payloads().begin(),
                                  all->payloads().end());
}

void Member::Fail(const absl::Status& why) {
  v1::HeartbeatRequest request;
  {
    absl::MutexLock lock(&mu_);
    // The job has failed already, or the place is given back, which makes this
    // member's calls fail.
    if (!state_.end().ok() || leaving_) return;
    request = FinalHeartbeat(MakeRequestLocked(), why);
  }
  const absl::Status told =
      client_->Heartbeat(request, kHeartbeatTimeout).status();
  if (!told.ok()) {
    spdlog::warn("could not report the failure: {}",
                 std::string(told.message()));
  }
}

void Member::Leave(const std::string& why) {
  v1::HeartbeatRequest request;
  {
    absl::MutexLock lock(&mu_);
    if (state_.over()) return;
    request = MakeRequestLocked();
    leaving_ = true;
  }
  request.set_leaving(why);
  const absl::Status told =
      client_->Heartbeat(request, kHeartbeatTimeout).status();
  if (!told.ok()) {
    spdlog::warn("could not give the place back: {}",
                 std::string(told.message()));
  }
}

v1::JobPhase Member::phase() const {
  absl::MutexLock lock(&mu_);
  return state_.phase();
}

absl::Status Member::end() const {
  absl::MutexLock lock(&mu_);
  return state_.end();
}

absl::Status Member::Contact() const {
  absl::MutexLock lock(&mu_);
  if (!state_.end().ok()) return state_.end();
  // After the job's end the coordinator need not answer any more.
  if (state_.phase() == v1::JOB_PHASE_DONE) return absl::OkStatus();
  const int64_t now = options_.clock->NowMicros();
  return absl::Microseconds(state_.contact().silent_micros(now)) < kSilence
             ? absl::OkStatus()
             : state_.contact().Silence(now);
}

}  // namespace tributary
