// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/program/program_step.h"

#include <algorithm>

namespace tributary {

void ProgramStep::Begin(uint64_t samples) {
  samples_ = samples;
  push_seconds_ = 0;
  (void)sample_.Take();  // drops the sample of an unfinished step
}

v1::StepReport ProgramStep::Finish(
    const Session::StepResult& result, double wait_seconds, bool dropped,
    const GradientSynchronizer::Traffic& traffic) {
  const double compute = std::max(0.0, result.compute_seconds - push_seconds_);
  v1::StepReport report;
  report.set_data_seconds(result.data_seconds);
  report.set_compute_seconds(compute);
  report.set_push_seconds(push_seconds_);
  report.set_wait_seconds(wait_seconds);
  report.set_step_seconds(result.data_seconds + compute + push_seconds_ +
                          wait_seconds);
  report.set_bytes_sent(traffic.bytes_sent - before_.bytes_sent);
  report.set_bytes_received(traffic.bytes_received - before_.bytes_received);
  before_ = traffic;
  const uint32_t sample = sample_.Take();
  if (dropped || samples_ == 0) return report;
  report.set_samples(samples_);
  report.set_no_loss(!result.loss);
  report.set_loss_sum(result.loss.value_or(0) * static_cast<double>(samples_));
  report.set_gradient_sample(sample);
  return report;
}

}  // namespace tributary
