// SPDX-License-Identifier: Apache-2.0
#include "common/base/data_course.h"

#include <algorithm>

#include "common/base/limits.h"

namespace tributary {
namespace {

// Enough, because a course gets a stretch only when a person resumes a job with
// other batches.
constexpr size_t kMaxStretches = 1000;
constexpr size_t kMaxOrderBytes = 1000;

bool IsPossible(const DataStretch& s) {
  return s.order.size() <= kMaxOrderBytes && s.step >= 0 && s.step < kMaxStep &&
         s.begin.epoch >= 0 && s.begin.epoch < kMaxStep && s.rows >= 1 &&
         s.rows < kMaxStep && s.begin.row >= 0 && s.begin.row < s.rows &&
         s.global_batch >= 1 && s.accumulation >= 1;
}

}  // namespace

// Computed so that a very large batch or accumulation cannot overflow.
int64_t DataStretch::StepsAfter(int64_t row) const {
  const int64_t batches = (rows - row - 1) / global_batch + 1;
  return (batches - 1) / accumulation + 1;
}

DataPosition DataStretch::After(int64_t steps) const {
  const int64_t first = StepsAfter(begin.row);
  if (steps < first) {
    return {begin.epoch, begin.row + steps * accumulation * global_batch};
  }
  const int64_t epoch = steps_per_epoch();
  steps -= first;
  return {begin.epoch + 1 + steps / epoch,
          steps % epoch * accumulation * global_batch};
}

bool DataStretch::TakesAs(const DataStretch& other) const {
  return rows == other.rows && global_batch == other.global_batch &&
         accumulation == other.accumulation && order == other.order;
}

std::optional<DataCourse> DataCourse::Create(
    std::vector<DataStretch> stretches) {
  DataCourse course;
  if (stretches.size() > kMaxStretches) return std::nullopt;
  for (DataStretch& stretch : stretches) {
    if (!IsPossible(stretch)) return std::nullopt;
    if (course.empty() ? stretch.step != 0
                       : stretch.step <= course.last().step) {
      return std::nullopt;
    }
    if (!course.empty()) {
      const DataPosition there = course.After(stretch.step);
      if (there.epoch != stretch.begin.epoch ||
          there.row != stretch.begin.row) {
        return std::nullopt;
      }
    }
    course.Add(std::move(stretch));
  }
  return course;
}

const DataStretch& DataCourse::At(int64_t step) const {
  size_t at = stretches_.size() - 1;
  while (at > 0 && stretches_[at].step > step) --at;
  return stretches_[at];
}

DataPosition DataCourse::After(int64_t step) const {
  const DataStretch& stretch = At(step);
  return stretch.After(step - stretch.step);
}

int64_t DataCourse::NextEpochEnd(int64_t step) const {
  const DataStretch& stretch = At(step);
  const int64_t next = step + stretch.StepsAfter(After(step).row);
  // A later stretch may begin before this step.
  for (const DataStretch& later : stretches_) {
    if (later.step > step && later.step < next) return NextEpochEnd(later.step);
  }
  return next;
}

std::optional<int64_t> DataCourse::StepsOf(int64_t epochs) const {
  size_t at = stretches_.size() - 1;
  while (at > 0 && stretches_[at].begin.epoch >= epochs) --at;
  const DataStretch& from = stretches_[at];
  if (epochs <= from.begin.epoch) return from.step;
  int64_t steps = 0;
  if (__builtin_mul_overflow(epochs - from.begin.epoch - 1,
                             from.steps_per_epoch(), &steps) ||
      __builtin_add_overflow(from.step + from.StepsAfter(from.begin.row), steps,
                             &steps)) {
    return std::nullopt;
  }
  return steps;
}

DataCourse DataCourse::UpTo(int64_t step) const {
  DataCourse course;
  for (const DataStretch& stretch : stretches_) {
    if (stretch.step < step || course.empty()) course.Add(stretch);
  }
  return course;
}

void DataCourse::Add(DataStretch stretch) {
  stretches_.push_back(std::move(stretch));
}

}  // namespace tributary
