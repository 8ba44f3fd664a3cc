// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/job_control.h"

#include <utility>

#include "common/host/steady_waits.h"

namespace tributary {

JobControl::JobControl(JobCore::Options options)
    : term_(options.predecessor.state != nullptr
                ? options.predecessor.state->term() + 1
                : 1),
      job_(std::move(options)),
      calls_(&job_),
      output_(&job_) {}

v1::JobStatusResponse JobControl::Snapshot() const {
  absl::MutexLock lock(&job_.mu);
  v1::JobStatusResponse status =
      JobStatusOf(job_.core.state(), job_.core.reports(),
                  job_.core.checkpoints(), job_.core.now());
  status.set_phase(job_.core.phase());
  status.set_message(job_.core.Message());
  status.set_cause(job_.core.state().life().cause());
  if (JobWait waiting = job_.core.Waiting(); waiting) {
    *status.mutable_wait() = std::move(waiting.wait);
    status.mutable_wait()->set_seconds(
        static_cast<double>(job_.core.now() - waiting.since_micros) / 1e6);
  }
  *status.mutable_events() = job_.core.events().Messages();
  return status;
}

JobTotals JobControl::Totals() const {
  absl::MutexLock lock(&job_.mu);
  return JobTotalsOf(job_.core.state(), job_.core.reports(),
                     job_.core.checkpoints(),
                     job_.core.evaluations().decisions());
}

std::vector<v1::RegisterRequest> JobControl::Workers() const {
  absl::MutexLock lock(&job_.mu);
  std::vector<v1::RegisterRequest> workers;
  for (const Place& place : job_.core.state().membership().workers()) {
    workers.push_back(place.holder);
  }
  return workers;
}

HistogramSnapshot JobControl::CheckpointSeconds() const {
  absl::MutexLock lock(&job_.mu);
  return job_.core.checkpoints().seconds().Snapshot();
}

JobUpdate JobControl::WaitForUpdate(absl::Duration timeout) {
  absl::MutexLock lock(&job_.mu);
  const auto ready = [this]() ABSL_SHARED_LOCKS_REQUIRED(job_.mu) {
    return job_.closed || job_.core.HasUpdate();
  };
  AwaitFor(&job_.mu, absl::Condition(&ready), timeout);
  return job_.core.TakeUpdate();
}

JobUpdate JobControl::LastUpdate() {
  absl::MutexLock lock(&job_.mu);
  job_.core.CloseReports();
  return job_.core.TakeUpdate();
}

void JobControl::AllowStart(const std::string& checkpoint_directory) {
  LockedJob::Change change(&job_);
  job_.core.AllowStart(checkpoint_directory);
}

LossVerdict JobControl::MemberLost(v1::Role role, uint32_t index, int64_t pid,
                                   absl::string_view how) {
  LockedJob::Change change(&job_);
  return job_.core.state().losses().MemberLost(role, index, pid, how,
                                               job_.core.now());
}

void JobControl::RequestStop() {
  LockedJob::Change change(&job_);
  job_.core.state().steps().RequestStop();
}

void JobControl::Fail(absl::string_view why, v1::Cause cause) {
  LockedJob::Change change(&job_);
  job_.core.state().life().Fail(why, cause);
}

void JobControl::SetWaits(const v1::Wait& what) {
  absl::MutexLock lock(&job_.mu);
  job_.core.SetWaits(what);
}

bool JobControl::WaitUntilEveryoneKnowsEnd(absl::Duration timeout) {
  absl::MutexLock lock(&job_.mu);
  const auto known = [this]() ABSL_SHARED_LOCKS_REQUIRED(job_.mu) {
    return job_.closed ||
           (job_.core.state().life().over() && job_.core.Held().ok() &&
            job_.core.state().membership().EveryoneKnowsEnd());
  };
  return AwaitFor(&job_.mu, absl::Condition(&known), timeout);
}

void JobControl::Tick(absl::Duration timeout) {
  LockedJob::Change change(&job_);
  AwaitFor(&job_.mu, absl::Condition(&job_.closed), timeout);
  job_.core.Tick();
}

void JobControl::Close() {
  absl::MutexLock lock(&job_.mu);
  job_.closed = true;
}

bool JobControl::closed() const {
  absl::MutexLock lock(&job_.mu);
  return job_.closed;
}

bool JobControl::deposed() const {
  absl::MutexLock lock(&job_.mu);
  return job_.core.saver().deposed();
}

bool JobControl::saved() const {
  absl::MutexLock lock(&job_.mu);
  return job_.core.saver().saved();
}

}  // namespace tributary
