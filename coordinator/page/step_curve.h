// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tributary/v1/coordinator_state.pb.h"

namespace tributary {

// A curve over the steps of a run that takes any number of steps and keeps a
// bounded number of points. Each point is the mean of `width` consecutive
// steps. When there are too many points, neighbours are joined and the width
// doubles. From then on a curve has at least kMaxPoints / 2 points, and is the
// same function of the steps however often it is read.
class StepCurve {
 public:
  static constexpr size_t kMaxPoints = 400;

  struct Point {
    int64_t step = 0;  // the last step of the mean
    // nullopt: one of the values was not finite.
    std::optional<double> value;
  };

  // Steps come in order; a step that is not higher than the last one is left
  // out.
  void Add(int64_t step, double value);

  // Oldest first. The last point may be the mean of fewer steps.
  std::vector<Point> Points() const;
  int64_t width() const { return width_; }  // in steps

  // Saves the curve, and replaces it by a saved one.
  void Save(v1::StepsShown* shown) const;
  void Restore(const v1::StepsShown& shown);

 private:
  struct Bucket {
    int64_t index = 0;  // (step - 1) / width_ of its steps
    int64_t last_step = 0;
    int64_t steps = 0;
    double sum = 0;  // NaN or infinite if one of the values was
  };

  void Join();

  int64_t width_ = 1;
  std::vector<Bucket> buckets_;
};

}  // namespace tributary
