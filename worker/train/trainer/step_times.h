// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/clock.h"
#include "common/trace/trace_recorder.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "worker/rank/parallel/gradient_synchronizer.h"
#include "worker/train/model/tensor_group.h"

namespace tributary {

// Records how a worker spent the time of one step, and fills the step's report.
// For one thread.
class StepTimes {
 public:
  // Starts the step's time.
  explicit StepTimes(const Clock* clock)
      : clock_(clock), begin_micros_(clock->NowMicros()) {}

  int64_t Now() const { return clock_->NowMicros(); }
  // Adds an activity of the calling thread from `begin_micros` (of Now) until
  // now.
  void Add(v1::StepActivity activity, int64_t begin_micros) {
    Add(activity, begin_micros, Now());
  }
  void Add(v1::StepActivity activity, int64_t begin_micros,
           int64_t end_micros) {
    spans_.push_back({activity, begin_micros, end_micros});
  }
  // Subtracts the time of these exchanges, given in order, from forward and
  // backward.
  void TakeOut(const std::vector<TensorGroup::Exchange>& exchanges);
  // Adds the time since `begin_micros`, in which backward handed over a
  // gradient.
  void AddPush(int64_t begin_micros) { push_micros_ += Now() - begin_micros; }

  double Seconds(v1::StepActivity activity) const;

  // Ends the step's time. Sets the report's seconds and, for a step of the
  // timeline, its spans, including those of `beside`.
  void Fill(const std::vector<GradientSynchronizer::Span>& beside,
            v1::StepReport* report);
  // Records the spans of this step (from 0) and of `beside`. The recorder's
  // clock is this one.
  void Record(int64_t step,
              const std::vector<GradientSynchronizer::Span>& beside,
              TraceRecorder* recorder) const;

 private:
  struct Span {
    v1::StepActivity activity;
    int64_t begin_micros;
    int64_t end_micros;
  };

  // Microseconds of the step's wait that overlap spans of this activity. spans:
  // sorted and disjoint.
  int64_t WithinWait(const std::vector<Span>& spans,
                     v1::StepActivity activity) const;
  void Draw(const std::vector<Span>& beside, v1::StepReport* report) const;

  const Clock* const clock_;
  const int64_t begin_micros_;
  int64_t push_micros_ = 0;
  std::vector<Span> spans_;  // of the calling thread, in order
};

}  // namespace tributary
