// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/data_course.h"

namespace tributary {

// The steps after which a job evaluates: the last one of every epoch and,
// within epochs, every `every`-th step of the job. Steps count from 1.
struct EvaluationSteps {
  const DataCourse& course;  // not empty
  int64_t every = 0;         // 0: only at the ends of epochs

  bool Includes(int64_t step) const {
    return step > 0 &&
           (course.EndsEpoch(step) || (every > 0 && step % every == 0));
  }
  // The first step after `step` that is followed by an evaluation.
  int64_t After(int64_t step) const {
    const int64_t of_epoch = course.NextEpochEnd(step);
    return every > 0 ? std::min(of_epoch, (step / every + 1) * every)
                     : of_epoch;
  }
};

}  // namespace tributary
