// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/core/evaluation/evaluations.h"
#include "coordinator/core/progress.h"
#include "coordinator/page/step_curve.h"
#include "google/protobuf/repeated_field.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// The past of a run, as the status page shows it: curves of the training loss
// and of every evaluation metric, and the time parts of the newest steps. Its
// memory and its JSON are bounded, whatever the length of the run. Thread-safe.
class RunHistory {
 public:
  // The parts of a step are means over this many of the newest steps.
  static constexpr size_t kMeanSteps = 50;
  // Limit of curves of evaluations; further metrics are not shown.
  static constexpr size_t kMaxCurves = 16;

  // Add records. Call them in the order of steps.
  void AddStep(const StepRecord& record);
  void AddEvaluation(const EvaluationRecord& record);

  // The page's curve and times of the steps so far, saved so that a later
  // coordinator of the run can continue them.
  v1::StepsShown SaveSteps() const;
  void RestoreSteps(const v1::StepsShown& shown);

  // Returns one JSON object and a newline (docs/monitoring.md), with these
  // events. Values have five significant digits.
  std::string ToJson(
      const google::protobuf::RepeatedPtrField<v1::JobEvent>& events) const;

 private:
  mutable absl::Mutex mu_;
  StepCurve loss_ ABSL_GUARDED_BY(mu_);
  // By set and metric, for example {"test", "accuracy"}.
  std::map<std::pair<std::string, std::string>, StepCurve> evaluations_
      ABSL_GUARDED_BY(mu_);
  std::deque<StepSeconds> newest_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
