// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tributary {

// A position in the training rows: `row` rows of epoch `epoch` are taken. Both
// count from 0. The end of an epoch is row 0 of the next one.
struct DataPosition {
  int64_t epoch = 0;
  int64_t row = 0;
};

// How a job takes its training rows from a step on. A step takes `accumulation`
// global batches; the last step of an epoch takes the remaining rows.
struct DataStretch {
  int64_t step = 0;         // number of steps before this stretch
  DataPosition begin = {};  // where this stretch begins
  int64_t rows = 1;         // rows of an epoch
  int64_t global_batch = 1;
  int64_t accumulation = 1;
  std::string order = {};  // names the order that an epoch's rows have
  // True if the number of rows is unknown: `rows` is then the largest number
  // with which the recorded steps are right.
  bool rows_unknown = false;

  int64_t steps_per_epoch() const { return StepsAfter(0); }
  // The number of steps that the rest of an epoch takes after its first `row`
  // rows.
  int64_t StepsAfter(int64_t row) const;
  // The position after `steps` steps of this stretch.
  DataPosition After(int64_t steps) const;
  // Whether this stretch and `other` take the same rows in each step.
  bool TakesAs(const DataStretch& other) const;
};

// How a job, and the jobs that it continues, have taken their training rows:
// one stretch, and another one for every change of the batch. A pure function
// of the step, so that every process computes the same rows. Steps count from
// 1; a step number stands for the state after that step, and 0 for the start.
class DataCourse {
 public:
  DataCourse() = default;  // empty: the course is unknown
  // A stretch from step 0 on.
  explicit DataCourse(DataStretch stretch) { Add(std::move(stretch)); }
  // Returns nullopt if the stretches contradict themselves or each other.
  static std::optional<DataCourse> Create(std::vector<DataStretch> stretches);

  bool empty() const { return stretches_.empty(); }
  const std::vector<DataStretch>& stretches() const { return stretches_; }

  // This function and all below need a course that is not empty.
  const DataStretch& last() const { return stretches_.back(); }
  // The steps of an epoch in the last stretch.
  int64_t steps_per_epoch() const { return last().steps_per_epoch(); }
  DataPosition After(int64_t step) const;
  // The epoch of a step, counted from 1; 0 for step 0.
  int64_t EpochOf(int64_t step) const {
    return step > 0 ? After(step - 1).epoch + 1 : 0;
  }
  bool EndsEpoch(int64_t step) const {
    return step > 0 && After(step).row == 0;
  }
  // The first step after `step` that ends an epoch.
  int64_t NextEpochEnd(int64_t step) const;
  // The step with which the first `epochs` epochs end; nullopt: there are more
  // steps than can be counted.
  std::optional<int64_t> StepsOf(int64_t epochs) const;
  // Whether the first `step` steps take all rows of the first `epochs` epochs.
  bool Ends(int64_t epochs, int64_t step) const {
    return After(step).epoch >= epochs;
  }

  // The course up to `step`: without the stretches that begin at `step` or
  // later. The first stretch always stays.
  DataCourse UpTo(int64_t step) const;
  // Adds a stretch, which begins after the last one.
  void Add(DataStretch stretch);

 private:
  const DataStretch& At(int64_t step) const;

  std::vector<DataStretch> stretches_;  // in the order of their steps
};

}  // namespace tributary
