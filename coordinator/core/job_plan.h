// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/data_course.h"
#include "common/job/job_course.h"
#include "coordinator/core/members/membership.h"
#include "tributary/v1/checkpoint.pb.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/coordinator_state.pb.h"

namespace tributary {

// The point at which a job starts: the beginning by default, or a checkpoint of
// an earlier run.
struct JobStart {
  int64_t step = 0;            // updates applied
  std::string restore_from;    // the checkpoint's directory; empty: none
  uint64_t lineage = 0;        // of the job's checkpoints; 0: a new one
  uint32_t data_checksum = 0;  // from the checkpoint's manifest; 0: unknown
  // The checkpoint's manifest; null: there is no checkpoint, or it is unknown.
  std::shared_ptr<const v1::CheckpointManifest> manifest;
};

// The plan in force of a job, and the parts of the next plan: the declared
// model and the checkpoint from which it starts. A plain object.
class JobPlan {
 public:
  // `may_start` false: publishes no plan before AllowStart.
  JobPlan(const v1::JobSpec& job, uint64_t job_id, JobStart start,
          bool may_start);

  // Save the small parts, and the large parts: model and plan.
  void SaveSmall(v1::CoordinatorState* state) const;
  void SaveLarge(v1::CoordinatorState* state) const;
  // Increases with every change of what SaveLarge saves.
  uint64_t large_revision() const { return large_revision_; }
  void Restore(const v1::CoordinatorState& state);

  // Takes the first declaration of the model and compares later ones with it.
  // InvalidArgument: no plan can be made of it. FailedPrecondition: it differs
  // from the first, or its inputs or classes mean something else than those of
  // the checkpoint's model. Adds messages to `notices` when the data are not
  // the checkpoint's, and when ranks that keep residuals do not find theirs in
  // it.
  absl::Status Declare(v1::DeclareModelRequest request,
                       std::vector<std::string>* notices);
  // The argument is the directory for checkpoints; empty: none are written.
  void AllowStart(const std::string& checkpoint_directory);
  // The next plan starts from this checkpoint.
  void SetRestorePoint(int64_t step, const std::string& folder);
  // Says from where all members start over after `furthest` steps have begun.
  std::string RestartNotice(int64_t furthest) const;
  // Ends the plan in force; another plan shall follow.
  void End() { wants_new_ = true; }
  // Puts a new plan with a higher epoch in force. host: the coordinator's host;
  // empty: unknown.
  void Publish(const Membership& membership, const std::string& host);

  // Whether some rank has finished a step under the plan: a rank that has begun
  // the second step has finished the first. There must be a plan.
  bool HasAdvanced(const Membership& membership) const {
    return membership.HighestBegun() > plan_->start_step() + 1;
  }
  // FailedPrecondition unless the plan in force has this epoch.
  absl::Status CheckEpoch(uint64_t epoch) const;

  // Null before the first plan is published.
  const v1::Plan* get() const { return plan_.get(); }
  // The same, for readers without the lock: a published plan does not change.
  const std::shared_ptr<const v1::Plan>& shared() const { return plan_; }
  bool declared() const { return declaration_.parameters_size() > 0; }
  // Whether it is known how inputs become features, or why that is unknown.
  bool knows_inputs() const {
    return declaration_.has_preprocessing() ||
           !declaration_.no_preprocessing().empty();
  }
  // See EvaluationBasis; 0: not known yet, or the job has a program.
  uint32_t evaluation_basis() const;
  bool may_start() const { return may_start_; }
  // Whether a plan has ended and its successor is not published yet.
  bool wants_new() const { return wants_new_; }
  // Whether a plan may be published once the members are there.
  bool IsDue() const {
    return declared() && may_start_ && (!plan_ || wants_new_);
  }
  const v1::DeclareModelRequest& declaration() const { return declaration_; }
  int64_t total_steps() const { return declaration_.total_steps(); }
  // How the job takes its training rows, as the ranks have declared it or,
  // before they have, as the checkpoint says. Empty: neither is known.
  const DataCourse& course() const { return course_; }
  // The course for the answer to a rank that registers: without the part that
  // follows from the declared steps alone.
  SavedCourse CourseToTell() const;
  int64_t restore_step() const { return restore_step_; }
  const std::string& restore_from() const { return restore_from_; }
  uint64_t lineage() const;
  // Number of plans after the first.
  uint64_t rollbacks() const { return rollbacks_; }

 private:
  // Whether all members use the same directory for checkpoints: the job implies
  // it by asking for checkpoints, or all writers are on one host.
  bool SharesDirectory(const Membership& membership,
                       const std::string& host) const;
  void AddPreprocessing(const v1::DeclareModelRequest& request);
  // Checks that the inputs still mean what they meant to the checkpoint's
  // model.
  absl::Status CheckMeaning(const v1::DeclareModelRequest& request) const;
  // Takes over the course of a declaration, which extends the present course.
  absl::Status AddCourse(const v1::DeclareModelRequest& request,
                         std::vector<std::string>* notices);
  // Sets the course to the declared one, else to epochs of the declared steps.
  void FindCourse();
  // Adds notices about what has changed when a job continues from a checkpoint.
  void NoteChanges(std::vector<std::string>* notices) const;

  const v1::JobSpec job_;
  const uint64_t job_id_;
  const JobStart start_;
  std::shared_ptr<const v1::Plan> plan_;
  v1::DeclareModelRequest declaration_;  // the first; no parameters: none
  DataCourse course_;
  bool may_start_;
  bool wants_new_ = false;
  std::string checkpoint_directory_;
  int64_t restore_step_;
  std::string restore_from_;
  uint64_t rollbacks_ = 0;
  uint64_t large_revision_ = 0;
};

}  // namespace tributary
