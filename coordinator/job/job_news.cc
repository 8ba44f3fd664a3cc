// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/job_news.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/job/job_options.h"
#include "coordinator/core/model_declaration.h"
#include "coordinator/job/job_status.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

// Limit of notices that wait to be shown; the log has all of them.
constexpr size_t kMaxNotices = 1000;

// Whether the losses of both jobs can be compared.
bool HasSameLosses(const v1::JobSpec& a, const v1::JobSpec& b) {
  return a.data().train().SerializeAsString() ==
             b.data().train().SerializeAsString() &&
         a.training().loss().SerializeAsString() ==
             b.training().loss().SerializeAsString();
}

}  // namespace

JobNews::JobNews(JobState* state, WorkerReports* reports)
    : state_(*state), reports_(*reports) {
  const auto& manifest = state_.options().start.manifest;
  if (manifest && HasSameLosses(manifest->job(), state_.options().job)) {
    divergence_.Begin(manifest->first_loss());
  }
}

void JobNews::Restore(const std::vector<HistoryEvent>& events, int64_t step,
                      const v1::FirstLoss& first) {
  if (first.step() > 0) divergence_.Begin(first);
  knows_first_ = first.step() > 0;
  events_.Continue(events, step);
  logged_phase_ = state_.life().phase();
}

void JobNews::Note(std::string notice) {
  spdlog::warn("{}", notice);
  events_.Add(notice);
  if (notices_.size() < kMaxNotices) notices_.push_back(std::move(notice));
}

void JobNews::Note(std::vector<std::string> notices) {
  for (std::string& notice : notices) Note(std::move(notice));
}

bool JobNews::NotePhase() {
  if (state_.life().phase() == logged_phase_) return false;
  logged_phase_ = state_.life().phase();
  const std::string news = absl::StrCat(
      "the job is ", PhaseWord(logged_phase_),
      state_.life().message().empty() ? "" : ": ", state_.life().message());
  spdlog::info("{}", news);
  events_.Add(news);
  return true;
}

bool JobNews::HoldsNotices() const {
  return state_.steps().stop().stopped_early() && !state_.life().over() &&
         reports_.evaluations().HasRecords(kMaxStep) &&
         !reports_.HasEvaluations();
}

bool JobNews::Has(v1::JobPhase phase, bool held) const {
  return reports_.progress().HasRecords() ||
         (!notices_.empty() && !HoldsNotices()) || HasModel(held) ||
         reports_.HasEvaluations() || phase != shown_phase_;
}

void JobNews::WatchSteps(const std::vector<StepRecord>& steps) {
  if (!steps.empty() && !std::exchange(knows_first_, true) &&
      OtherData(state_.options().start.data_checksum,
                state_.plans().declaration().data_checksum())) {
    divergence_.Begin({});
  }
  for (const StepRecord& record : steps) {
    if (record.loss && record.samples > 0) {
      divergence_.Add(record.step, *record.loss);
    }
  }
  const std::string diverges = divergence_.TakeNotice();
  if (diverges.empty()) return;
  Note(diverges);
  if (state_.options().job.training().divergence() == v1::DIVERGENCE_FAIL) {
    state_.life().Fail(diverges, v1::CAUSE_DIVERGENCE);
  }
}

JobUpdate JobNews::Take(bool held) {
  JobUpdate update;
  update.steps = reports_.progress().Take();
  WatchSteps(update.steps);
  update.evaluations = reports_.TakeEvaluations();
  if (!HoldsNotices()) update.notices = std::exchange(notices_, {});
  update.events = events_.TakeNew();
  update.total_steps = KnownSteps(state_.plans().total_steps());
  update.course = state_.plans().course();
  if (HasModel(held)) {
    update.model = std::make_shared<const v1::DeclareModelRequest>(
        state_.plans().declaration());
    model_shown_ = true;
  }
  return update;
}

}  // namespace tributary
