// SPDX-License-Identifier: Apache-2.0
#include "worker/train/trainer/step_times.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/timeline_step.h"
#include "common/member/step_seconds.h"

namespace tributary {
namespace {

int64_t WallMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

double ToSeconds(int64_t micros) { return 1e-6 * static_cast<double>(micros); }

v1::StepActivity ActivityOf(const GradientSynchronizer::Span& span) {
  return span.optimizer ? v1::STEP_ACTIVITY_OPTIMIZER
                        : v1::STEP_ACTIVITY_COMMUNICATION;
}

}  // namespace

void StepTimes::TakeOut(const std::vector<TensorGroup::Exchange>& exchanges) {
  std::vector<Span> cut;
  size_t next = 0;
  for (Span span : std::exchange(spans_, {})) {
    const bool computes = span.activity == v1::STEP_ACTIVITY_FORWARD ||
                          span.activity == v1::STEP_ACTIVITY_BACKWARD;
    for (; computes && next < exchanges.size() &&
           exchanges[next].begin_micros < span.end_micros;
         ++next) {
      const int64_t begin =
          std::max(exchanges[next].begin_micros, span.begin_micros);
      const int64_t end = std::min(exchanges[next].end_micros, span.end_micros);
      if (begin >= end) continue;
      cut.push_back({span.activity, span.begin_micros, begin});
      cut.push_back({v1::STEP_ACTIVITY_EXCHANGE, begin, end});
      span.begin_micros = end;
    }
    cut.push_back(span);
  }
  spans_ = std::move(cut);
}

double StepTimes::Seconds(v1::StepActivity activity) const {
  int64_t micros = 0;
  for (const Span& span : spans_) {
    if (span.activity == activity)
      micros += span.end_micros - span.begin_micros;
  }
  return ToSeconds(micros);
}

int64_t StepTimes::WithinWait(const std::vector<Span>& spans,
                              v1::StepActivity activity) const {
  int64_t micros = 0;
  for (const Span& wait : spans_) {
    if (wait.activity != v1::STEP_ACTIVITY_WAIT) continue;
    for (const Span& span : spans) {
      if (span.activity != activity) continue;
      micros += std::max<int64_t>(
          0, std::min(span.end_micros, wait.end_micros) -
                 std::max(span.begin_micros, wait.begin_micros));
    }
  }
  return micros;
}

void StepTimes::Fill(const std::vector<GradientSynchronizer::Span>& beside,
                     v1::StepReport* report) {
  const int64_t end = Now();
  // Transfers of several blocks overlap. Merges them, so that time counts once.
  std::vector<Span> merged;
  for (const GradientSynchronizer::Span& span : beside) {
    const Span cut{ActivityOf(span), std::max(span.begin_micros, begin_micros_),
                   std::min(span.end_micros, end)};
    if (cut.begin_micros < cut.end_micros) merged.push_back(cut);
  }
  std::sort(merged.begin(), merged.end(), [](const Span& a, const Span& b) {
    return std::make_pair(a.activity, a.begin_micros) <
           std::make_pair(b.activity, b.begin_micros);
  });
  size_t kept = 0;
  for (const Span& span : merged) {
    if (kept > 0 && merged[kept - 1].activity == span.activity &&
        span.begin_micros <= merged[kept - 1].end_micros) {
      merged[kept - 1].end_micros =
          std::max(merged[kept - 1].end_micros, span.end_micros);
    } else {
      merged[kept++] = span;
    }
  }
  merged.resize(kept);

  StepSeconds seconds;
  seconds.step = ToSeconds(end - begin_micros_);
  seconds.data = Seconds(v1::STEP_ACTIVITY_DATA);
  seconds.exchange = Seconds(v1::STEP_ACTIVITY_EXCHANGE);
  seconds.idle = Seconds(v1::STEP_ACTIVITY_IDLE);
  seconds.wait = Seconds(v1::STEP_ACTIVITY_WAIT);
  seconds.push = ToSeconds(push_micros_);
  seconds.compute =
      std::max(0.0, seconds.step - seconds.data - seconds.exchange -
                        seconds.idle - seconds.wait - seconds.push);
  seconds.optimizer =
      ToSeconds(WithinWait(merged, v1::STEP_ACTIVITY_OPTIMIZER));
  for (const StepSecondsField& field : kStepSeconds) {
    (report->*field.set)(seconds.*field.seconds);
  }
  if (IsTimelineStep(report->step())) Draw(merged, report);
}

void StepTimes::Record(int64_t step,
                       const std::vector<GradientSynchronizer::Span>& beside,
                       TraceRecorder* recorder) const {
  for (const Span& span : spans_) {
    recorder->Add({.kind = static_cast<TraceKind>(span.activity),
                   .step = step,
                   .begin_micros = span.begin_micros,
                   .end_micros = span.end_micros});
  }
  for (const GradientSynchronizer::Span& span : beside) {
    recorder->Add({.kind = static_cast<TraceKind>(ActivityOf(span)),
                   .step = step,
                   .begin_micros = span.begin_micros,
                   .end_micros = span.end_micros});
  }
}

void StepTimes::Draw(const std::vector<Span>& beside,
                     v1::StepReport* report) const {
  report->set_begin_micros(WallMicros() - (Now() - begin_micros_));
  for (const std::vector<Span>* spans : {&spans_, &beside}) {
    for (const Span& span : *spans) {
      if (report->spans_size() >= kMaxStepSpans) return;
      if (span.begin_micros >= span.end_micros) continue;
      v1::StepSpan* const drawn = report->add_spans();
      drawn->set_activity(span.activity);
      drawn->set_begin_micros(
          static_cast<uint32_t>(span.begin_micros - begin_micros_));
      drawn->set_end_micros(
          static_cast<uint32_t>(span.end_micros - begin_micros_));
    }
  }
}

}  // namespace tributary
