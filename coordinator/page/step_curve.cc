// SPDX-License-Identifier: Apache-2.0
#include "coordinator/page/step_curve.h"

#include <algorithm>
#include <cmath>

namespace tributary {

void StepCurve::Add(int64_t step, double value) {
  if (!buckets_.empty() && step <= buckets_.back().last_step) return;
  const int64_t index = (step - 1) / width_;
  if (buckets_.empty() || buckets_.back().index != index) {
    buckets_.push_back({.index = index});
  }
  Bucket& last = buckets_.back();
  last.last_step = step;
  ++last.steps;
  last.sum += value;
  while (buckets_.size() > kMaxPoints) Join();
}

void StepCurve::Join() {
  width_ *= 2;
  size_t joined = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    Bucket bucket = buckets_[i];
    bucket.index /= 2;
    if (i > 0 && buckets_[joined - 1].index == bucket.index) {
      buckets_[joined - 1].last_step = bucket.last_step;
      buckets_[joined - 1].steps += bucket.steps;
      buckets_[joined - 1].sum += bucket.sum;
    } else {
      buckets_[joined++] = bucket;
    }
  }
  buckets_.resize(joined);
}

void StepCurve::Save(v1::StepsShown* shown) const {
  shown->set_width(width_);
  for (const Bucket& bucket : buckets_) {
    v1::CurvePoint* const point = shown->add_loss();
    point->set_index(bucket.index);
    point->set_last_step(bucket.last_step);
    point->set_steps(bucket.steps);
    point->set_sum(bucket.sum);
  }
}

void StepCurve::Restore(const v1::StepsShown& shown) {
  width_ = std::max<int64_t>(1, shown.width());
  buckets_.clear();
  for (const v1::CurvePoint& point : shown.loss()) {
    buckets_.push_back({.index = point.index(),
                        .last_step = point.last_step(),
                        .steps = std::max<int64_t>(1, point.steps()),
                        .sum = point.sum()});
  }
}

std::vector<StepCurve::Point> StepCurve::Points() const {
  std::vector<Point> points;
  points.reserve(buckets_.size());
  for (const Bucket& bucket : buckets_) {
    const double mean = bucket.sum / static_cast<double>(bucket.steps);
    points.push_back({bucket.last_step, std::isfinite(mean)
                                            ? std::optional<double>(mean)
                                            : std::nullopt});
  }
  return points;
}

}  // namespace tributary
