#include "server/coordinator/job_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/partition_plan.h"
#include "common/status_macros.h"
#include "common/wire/plan_codec.h"

namespace tributary {
namespace {

constexpr size_t kMaxSentenceBytes = 4096;

double Seconds(int64_t micros) { return static_cast<double>(micros) / 1e6; }

uint64_t BucketBytes(const v1::JobSpec& job) {
  const uint64_t bytes = job.strategy().parameter_server().bucket_bytes();
  return bytes == 0 ? PartitionPlan::kDefaultBucketBytes : bytes;
}

std::string Describe(const v1::ParameterSpec& spec) {
  return absl::StrCat("\"", spec.name(), "\" [",
                      absl::StrJoin(spec.shape(), ", "), "]");
}

// Empty when the same; else what differs.
std::string Difference(const v1::DeclareModelRequest& first,
                       const v1::DeclareModelRequest& other) {
  if (first.parameters_size() != other.parameters_size()) {
    return absl::StrCat(other.parameters_size(), " parameters instead of ",
                        first.parameters_size());
  }
  for (int i = 0; i < first.parameters_size(); ++i) {
    const std::string wanted = Describe(first.parameters(i));
    const std::string came = Describe(other.parameters(i));
    if (wanted != came) {
      return absl::StrCat("parameter ", i, " as ", came, " instead of ",
                          wanted);
    }
  }
  if (first.total_steps() != other.total_steps()) {
    return absl::StrCat(other.total_steps(), " steps instead of ",
                        first.total_steps());
  }
  if (first.steps_per_epoch() != other.steps_per_epoch()) {
    return absl::StrCat(other.steps_per_epoch(), " steps an epoch instead of ",
                        first.steps_per_epoch());
  }
  return "";
}

}  // namespace

JobState::JobState(Options options, int64_t now_micros)
    : options_(std::move(options)),
      start_micros_(now_micros),
      last_tick_micros_(now_micros),
      membership_(options_.job.cluster().servers(),
                  options_.job.cluster().workers(),
                  int64_t{options_.lease_ms} * 1000) {}

absl::StatusOr<v1::RegisterResponse> JobState::Register(
    const v1::RegisterRequest& request, int64_t now_micros) {
  if (over()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the job \"", options_.job.name(), "\" is over",
                     message_.empty() ? "" : ": ", message_));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const Place* place,
                             membership_.Register(request, now_micros));
  v1::RegisterResponse response;
  response.set_index(place->index);
  response.set_incarnation(place->incarnation);
  response.set_job_id(options_.job_id);
  *response.mutable_job() = options_.job;
  response.set_heartbeat_ms(options_.heartbeat_ms);
  response.set_lease_ms(options_.lease_ms);
  PublishPlanWhenComplete();
  return response;
}

absl::Status JobState::DeclareModel(const v1::DeclareModelRequest& request,
                                    int64_t now_micros) {
  TRIBUTARY_RETURN_IF_ERROR(membership_
                                .Renew(v1::ROLE_WORKER, request.rank(),
                                       request.incarnation(), now_micros)
                                .status());
  if (request.total_steps() < 1 || request.steps_per_epoch() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "total_steps and steps_per_epoch must be at least 1, got ",
        request.total_steps(), " and ", request.steps_per_epoch()));
  }
  TRIBUTARY_RETURN_IF_ERROR(
      PartitionPlan::Create(FromProto(request.parameters()),
                            options_.job.cluster().servers(),
                            BucketBytes(options_.job))
          .status());
  if (declaration_.parameters_size() == 0) {
    declaration_ = request;
    PublishPlanWhenComplete();
    return absl::OkStatus();
  }
  const std::string difference = Difference(declaration_, request);
  if (difference.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "worker ", request.rank(), " declares ", difference, ", as worker ",
      declaration_.rank(), " does: do both read the same job and data?"));
}

void JobState::PublishPlanWhenComplete() {
  if (plan_ || declaration_.parameters_size() == 0 || over() ||
      !membership_.Complete()) {
    return;
  }
  plan_.emplace();
  plan_->set_job_id(options_.job_id);
  plan_->set_epoch(1);
  *plan_->mutable_parameters() = declaration_.parameters();
  for (const Place& server : membership_.servers()) {
    plan_->add_servers(server.holder.address());
  }
  plan_->set_bucket_bytes(BucketBytes(options_.job));
  plan_->set_num_workers(options_.job.cluster().workers());
  plan_->set_total_steps(declaration_.total_steps());
  phase_ = v1::JOB_PHASE_RUNNING;
}

std::string JobState::Missing() const {
  std::string missing = membership_.Missing();
  if (declaration_.parameters_size() == 0) {
    absl::StrAppend(&missing, missing.empty() ? "" : ", ", "the model");
  }
  return missing;
}

absl::Status JobState::Renew(const v1::HeartbeatRequest& request,
                             int64_t now_micros) {
  return membership_
      .Renew(request.role(), request.index(), request.incarnation(), now_micros)
      .status();
}

v1::HeartbeatResponse JobState::Apply(const v1::HeartbeatRequest& request,
                                      uint32_t steps_taken, int64_t last_step) {
  Place& place = request.role() == v1::ROLE_SERVER
                     ? membership_.servers()[request.index()]
                     : membership_.workers()[request.index()];
  // A late copy of an earlier heartbeat must not turn anything back.
  const int64_t begun_step =
      std::max(place.latest.begun_step(), request.begun_step());
  place.latest = request;
  place.latest.clear_steps();
  place.latest.set_begun_step(begun_step);
  if (!request.error().empty()) {
    Fail(absl::StrCat(place.Name(), " failed: ",
                      request.error().substr(0, kMaxSentenceBytes)));
  }
  if (request.role() == v1::ROLE_WORKER) {
    if (request.finished() && !place.finished &&
        static_cast<int>(steps_taken) == request.steps_size()) {
      place.finished = true;
      CheckFinish(place, last_step);
    }
    if (request.paused() && phase_ == v1::JOB_PHASE_STOPPING) {
      place.stop_bound = begun_step;
    }
    SettleStopStep();
  }
  v1::HeartbeatResponse response = Farewell(request);
  response.set_steps_taken(steps_taken);
  return response;
}

v1::HeartbeatResponse JobState::Farewell(const v1::HeartbeatRequest& request) {
  v1::HeartbeatResponse response;
  response.set_phase(phase_);
  response.set_message(message_);
  if (stop_step_) response.set_stop_step(*stop_step_);
  if (over()) {
    std::vector<Place>& places = request.role() == v1::ROLE_SERVER
                                     ? membership_.servers()
                                     : membership_.workers();
    if (request.index() < places.size() &&
        places[request.index()].incarnation == request.incarnation()) {
      places[request.index()].knows_end = true;
    }
  }
  return response;
}

void JobState::CheckFinish(const Place& worker, int64_t last_step) {
  const int64_t wanted = stop_step_.value_or(declaration_.total_steps());
  if (last_step == wanted) return;
  Fail(absl::StrCat(worker.Name(), " finished after step ", last_step, " of ",
                    wanted));
}

// A worker that has finished or paused begins no step beyond the one it named,
// so the highest of them is one that all can still reach.
void JobState::SettleStopStep() {
  if (phase_ != v1::JOB_PHASE_STOPPING || stop_step_) return;
  int64_t highest = 0;
  for (const Place& worker : membership_.workers()) {
    if (worker.stop_bound < 0 && !worker.finished) return;
    highest = std::max({highest, worker.stop_bound,
                        worker.finished ? worker.latest.begun_step() : 0});
  }
  stop_step_ = highest;
}

int64_t JobState::LastStepOf(const Place& place) const {
  if (place.role == v1::ROLE_WORKER) return place.latest.begun_step();
  int64_t highest = 0;
  for (const Place& worker : membership_.workers()) {
    highest = std::max(highest, worker.latest.begun_step());
  }
  return highest;
}

void JobState::Tick(int64_t now_micros) {
  if (over()) return;
  const int64_t pause_micros = now_micros - last_tick_micros_;
  last_tick_micros_ = now_micros;
  if (pause_micros > int64_t{options_.lease_ms} * 1000 / 2) {
    membership_.RenewAll(now_micros);
  }
  for (const Place* lost : membership_.Expire(now_micros)) {
    // Before the plan names its members another may take the place.
    if (!plan_) continue;
    Fail(absl::StrFormat("%s was lost at step %d: no heartbeat for %.1f s",
                         lost->Name(), LastStepOf(*lost),
                         Seconds(now_micros - lost->last_heartbeat_micros)));
  }
  if (!plan_ && now_micros - start_micros_ >= options_.start_timeout_micros) {
    Fail(absl::StrFormat("waited %.1f s in vain for %s",
                         Seconds(now_micros - start_micros_), Missing()));
  }
}

void JobState::RequestStop() {
  if (stop_requested_ || over()) return;
  stop_requested_ = true;
  if (!plan_) {
    Fail(absl::StrCat("stopped before the first step, while waiting for ",
                      Missing()));
    return;
  }
  phase_ = v1::JOB_PHASE_STOPPING;
  SettleStopStep();
}

void JobState::Fail(absl::string_view why) {
  if (over()) return;
  phase_ = v1::JOB_PHASE_FAILED;
  message_ = std::string(why);
}

void JobState::MarkDone() {
  if (!over()) phase_ = v1::JOB_PHASE_DONE;
}

bool JobState::AllWorkersFinished() const {
  return std::all_of(membership_.workers().begin(), membership_.workers().end(),
                     [](const Place& worker) { return worker.finished; });
}

bool JobState::EveryoneKnowsEnd() const {
  const auto knows = [](const Place& place) {
    return !place.alive || place.finished || place.knows_end;
  };
  return std::all_of(membership_.servers().begin(), membership_.servers().end(),
                     knows) &&
         std::all_of(membership_.workers().begin(), membership_.workers().end(),
                     knows);
}

}  // namespace tributary
