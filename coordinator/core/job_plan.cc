// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/job_plan.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/checkpoint/files/residual_file.h"
#include "common/job/job_course.h"
#include "common/job/job_options.h"
#include "common/status/status_macros.h"
#include "common/status/utf8.h"
#include "coordinator/core/input_meaning.h"
#include "coordinator/core/model_declaration.h"
#include "coordinator/core/resumed_declaration.h"

namespace tributary {
namespace {

// Limit of the reason why there is no preprocessing; a message shows it.
constexpr size_t kMaxReasonBytes = 1000;

// A model cannot have more outputs for a label than tokens.
constexpr int kMaxClassWeights = 1 << 24;

void AddNotice(std::string notice, std::vector<std::string>* notices) {
  if (!notice.empty()) notices->push_back(std::move(notice));
}

// Returns a resumed job's notice about its residuals; empty: it takes up those
// of the checkpoint, or neither has any.
std::string ResidualsChange(const v1::JobSpec& job,
                            const v1::CheckpointManifest& manifest,
                            const v1::Plan& plan) {
  const Strategy strategy = StrategyOf(job);
  const bool holds_some = manifest.residuals_size() > 0;
  if (!strategy.error_feedback) {
    return holds_some ? "the residuals of the checkpoint are left out: this "
                        "job sends gradients without error feedback"
                      : "";
  }
  std::string why = WhyNoResiduals(manifest, plan);
  if (holds_some && !strategy.checkpoints_residuals()) {
    why = "only bsp takes up those of the checkpoint";
  }
  return why.empty()
             ? ""
             : absl::StrCat("every rank begins with a residual of zero: ", why);
}

}  // namespace

JobPlan::JobPlan(const v1::JobSpec& job, uint64_t job_id, JobStart start,
                 bool may_start)
    : job_(job),
      job_id_(job_id),
      start_(std::move(start)),
      may_start_(may_start),
      restore_step_(start_.step),
      restore_from_(start_.restore_from) {
  if (start_.manifest) course_ = CourseOf(*start_.manifest);
}

uint64_t JobPlan::lineage() const {
  return start_.lineage != 0 ? start_.lineage : job_id_;
}

void JobPlan::SaveLarge(v1::CoordinatorState* state) const {
  *state->mutable_declaration() = declaration_;
  if (plan_) *state->mutable_plan() = *plan_;
}

void JobPlan::SaveSmall(v1::CoordinatorState* state) const {
  state->set_lineage(lineage());
  state->set_restore_step(restore_step_);
  state->set_restore_from(restore_from_);
  state->set_wants_new_plan(wants_new_);
  state->set_rollbacks(rollbacks_);
}

void JobPlan::Restore(const v1::CoordinatorState& state) {
  declaration_ = state.declaration();
  ++large_revision_;
  if (state.has_plan()) {
    plan_ = std::make_shared<const v1::Plan>(state.plan());
    checkpoint_directory_ = plan_->checkpoint_directory();
  }
  restore_step_ = state.restore_step();
  restore_from_ = state.restore_from();
  wants_new_ = state.wants_new_plan();
  rollbacks_ = state.rollbacks();
  FindCourse();
}

void JobPlan::FindCourse() {
  if (declaration_.course_size() > 0) {
    course_ = CourseFromProto(declaration_.course()).value_or(course_);
  } else if (declaration_.steps_per_epoch() > 0) {
    course_ = DataCourse(DataStretch{.rows = declaration_.steps_per_epoch()});
  }
}

absl::Status JobPlan::Declare(v1::DeclareModelRequest request,
                              std::vector<std::string>* notices) {
  TRIBUTARY_RETURN_IF_ERROR(ResolveLength(job_, &request));
  if (request.total_steps() < 1 || request.steps_per_epoch() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "total_steps and steps_per_epoch must be at least 1, got ",
        request.total_steps(), " and ", request.steps_per_epoch()));
  }
  // A thousand workers declare the same model; it is checked once.
  const std::string difference =
      declared() ? DeclarationDifference(declaration_, request) : "";
  if (!declared() || !difference.empty()) {
    TRIBUTARY_RETURN_IF_ERROR(CheckDeclaration(request, job_));
  }
  if (request.class_weights_size() > kMaxClassWeights) {
    return absl::InvalidArgumentError(
        absl::StrCat("wanted at most ", kMaxClassWeights,
                     " class_weights, got ", request.class_weights_size()));
  }
  if (const size_t bytes = request.preprocessing().ByteSizeLong();
      bytes > kMaxPreprocessingBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("wanted a preprocessing of at most ",
                     kMaxPreprocessingBytes, " bytes, got ", bytes));
  }
  TRIBUTARY_RETURN_IF_ERROR(CheckCourse(request, job_, start_.manifest.get()));
  TRIBUTARY_RETURN_IF_ERROR(CheckMeaning(request));
  if (!declared()) {
    declaration_ = request;
    declaration_.DiscardUnknownFields();
    ++large_revision_;
    FindCourse();
    NoteChanges(notices);
    return absl::OkStatus();
  }
  if (difference.empty()) {
    AddPreprocessing(request);
    return AddCourse(request, notices);
  }
  const std::string declares =
      absl::StrCat("worker ", request.rank(), " declares ", difference);
  if (request.rank() == declaration_.rank()) {
    return absl::FailedPreconditionError(
        absl::StrCat(declares, ", as the process before it in this place did: ",
                     "have the program's arguments or the data changed?"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      declares, ", as worker ", declaration_.rank(),
      job_.has_program() ? " does: do both run the same program with the same "
                           "arguments?"
                         : " does: do both read the same job and data?"));
}

SavedCourse JobPlan::CourseToTell() const {
  SavedCourse course = declaration_.course();
  if (course.empty() && start_.manifest) {
    CourseToProto(CourseOf(*start_.manifest), &course);
  }
  return course;
}

absl::Status JobPlan::AddCourse(const v1::DeclareModelRequest& request,
                                std::vector<std::string>* notices) {
  const std::string difference =
      CourseDifference(declaration_.course(), request.course());
  if (!difference.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "worker ", request.rank(), " takes ", difference,
        "; all ranks must take the same number of steps with equal batches, so "
        "check that they run the same program on the same data"));
  }
  if (request.course_size() > declaration_.course_size()) {
    *declaration_.mutable_course() = request.course();
    ++large_revision_;
    FindCourse();
    AddNotice(BatchChange(course_, start_.step, declaration_.total_steps()),
              notices);
  }
  return absl::OkStatus();
}

void JobPlan::NoteChanges(std::vector<std::string>* notices) const {
  const bool other_rows =
      OtherData(start_.data_checksum, declaration_.data_checksum());
  if (other_rows) {
    notices->push_back(
        "the training data are not those of the checkpoint: this run does "
        "not end as the one before it would have ended");
  }
  if (start_.manifest) {
    AddNotice(
        ResidualsChange(job_, *start_.manifest, PlanOf(declaration_, job_, {})),
        notices);
  }
  if (!start_.manifest || start_.step == 0) return;
  const int64_t total = declaration_.total_steps();
  if (start_.step == total) {
    notices->push_back(absl::StrCat("the checkpoint is of the last step, ",
                                    total, ", so nothing is left to train"));
  }
  AddNotice(ValidationChange(job_, other_rows, *start_.manifest), notices);
  AddNotice(BatchChange(course_, start_.step, total), notices);
  AddNotice(RateChange(job_, total, *start_.manifest), notices);
  AddNotice(RanksChange(job_, *start_.manifest), notices);
}

absl::Status JobPlan::CheckMeaning(
    const v1::DeclareModelRequest& request) const {
  if (!request.has_preprocessing() || !start_.manifest ||
      !start_.manifest->has_inputs()) {
    return absl::OkStatus();
  }
  const std::string change = MeaningChange(start_.manifest->inputs(),
                                           MeaningOf(request.preprocessing()));
  if (change.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      change,
      " of the training data are not those of the checkpoint, whose "
      "model would take one for another: go on with data that have the same "
      "ones, or begin a new run"));
}

// Only rank 0 sends the preprocessing, and another rank may have declared the
// model before.
void JobPlan::AddPreprocessing(const v1::DeclareModelRequest& request) {
  if (knows_inputs()) return;
  ++large_revision_;
  if (request.has_preprocessing()) {
    *declaration_.mutable_preprocessing() = request.preprocessing();
    declaration_.mutable_preprocessing()->DiscardUnknownFields();
  }
  *declaration_.mutable_class_weights() = request.class_weights();
  declaration_.set_no_preprocessing(
      std::string(CutUtf8(request.no_preprocessing(), kMaxReasonBytes)));
}

uint32_t JobPlan::evaluation_basis() const {
  return knows_inputs() ? EvaluationBasis(job_, declaration_) : 0;
}

void JobPlan::AllowStart(const std::string& checkpoint_directory) {
  may_start_ = true;
  checkpoint_directory_ = checkpoint_directory;
}

void JobPlan::SetRestorePoint(int64_t step, const std::string& folder) {
  restore_step_ = step;
  restore_from_ = folder;
}

bool JobPlan::SharesDirectory(const Membership& membership,
                              const std::string& host) const {
  const v1::CheckpointSpec& wanted = job_.checkpoint();
  if (wanted.every_steps() > 0 || !wanted.directory().empty() ||
      job_.evaluation().keep_best()) {
    return true;
  }
  const bool ranks_write = StrategyOf(job_).ranks_write_checkpoints();
  return absl::c_all_of(membership.places(), [&](const Place& place) {
    const bool writes = place.role == v1::ROLE_SERVER || ranks_write;
    return !writes || host.empty() || place.holder.host() == host;
  });
}

void JobPlan::Publish(const Membership& membership, const std::string& host) {
  if (plan_) ++rollbacks_;
  wants_new_ = false;
  const uint64_t epoch = plan_ ? plan_->epoch() + 1 : 1;
  std::vector<std::string> addresses;
  for (const Place& server : membership.servers()) {
    addresses.push_back(server.holder.address());
  }
  v1::Plan plan = PlanOf(declaration_, job_, std::move(addresses));
  plan.set_job_id(job_id_);
  plan.set_lineage(lineage());
  plan.set_epoch(epoch);
  plan.set_start_step(restore_step_);
  plan.set_restore_from(restore_from_);
  for (const Place& worker : membership.workers()) {
    plan.add_incarnations(worker.FirstIncarnation());
  }
  if (SharesDirectory(membership, host)) {
    plan.set_checkpoint_directory(checkpoint_directory_);
  }
  const v1::EvaluationSpec& evaluation = job_.evaluation();
  if (SyncTraitsOf(job_).mode == ApplyMode::kSeparate && !course_.empty() &&
      (evaluation.keep_best() || evaluation.stop_after() > 0)) {
    CourseToProto(course_, plan.mutable_course());
  }
  plan_ = std::make_shared<const v1::Plan>(std::move(plan));
  ++large_revision_;
}

std::string JobPlan::RestartNotice(int64_t furthest) const {
  if (!restore_from_.empty()) {
    return absl::StrCat("everybody goes back to step ", restore_step_,
                        ", checkpoint ", restore_from_);
  }
  return absl::StrCat(
      "there is no checkpoint: everybody starts over at the beginning, and ",
      furthest, " steps are computed again");
}

absl::Status JobPlan::CheckEpoch(uint64_t epoch) const {
  if (plan_ && plan_->epoch() == epoch) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the plan in force is of epoch ", plan_ ? plan_->epoch() : 0,
                   ", got ", epoch));
}

}  // namespace tributary
