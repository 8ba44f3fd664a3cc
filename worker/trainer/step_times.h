#pragma once

#include <cstdint>
#include <vector>

#include "common/base/clock.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "worker/model/tensor_group.h"
#include "worker/parallel/gradient_synchronizer.h"

namespace tributary {

// When a worker did what in one step, and what the step's report says of it.
// For one thread.
class StepTimes {
 public:
  // The step begins now.
  explicit StepTimes(const Clock* clock)
      : clock_(clock), begin_micros_(clock->NowMicros()) {}

  int64_t Now() const { return clock_->NowMicros(); }
  // What the calling thread has done from `begin_micros` (of Now) until now.
  void Add(v1::StepActivity activity, int64_t begin_micros) {
    Add(activity, begin_micros, Now());
  }
  void Add(v1::StepActivity activity, int64_t begin_micros,
           int64_t end_micros) {
    spans_.push_back({activity, begin_micros, end_micros});
  }
  // Within forward and backward, time that went into these exchanges, in order.
  void TakeOut(const std::vector<TensorGroup::Exchange>& exchanges);
  // Of backward, handing a gradient over, since `begin_micros`.
  void AddPush(int64_t begin_micros) { push_micros_ += Now() - begin_micros; }

  double Seconds(v1::StepActivity activity) const;

  // The step ends now: sets the report's seconds and, of a step that is drawn,
  // its spans, those of `beside` among them.
  void Fill(const std::vector<GradientSynchronizer::Span>& beside,
            v1::StepReport* report);

 private:
  struct Span {
    v1::StepActivity activity;
    int64_t begin_micros;
    int64_t end_micros;
  };

  // Microseconds of the step's wait in which one of `spans` of this kind went
  // on. They are sorted and do not overlap.
  int64_t WithinWait(const std::vector<Span>& spans,
                     v1::StepActivity activity) const;
  void Draw(const std::vector<Span>& beside, v1::StepReport* report) const;

  const Clock* const clock_;
  const int64_t begin_micros_;
  int64_t push_micros_ = 0;
  std::vector<Span> spans_;  // of the calling thread, in order
};

}  // namespace tributary
