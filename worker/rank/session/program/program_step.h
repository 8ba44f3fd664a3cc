// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tributary/v1/coordinator_service.pb.h"
#include "worker/rank/parallel/gradient_synchronizer.h"
#include "worker/rank/session/program/gradient_sample.h"
#include "worker/rank/session/session.h"

namespace tributary {

// Adds up the samples and times of a program's step, for the step's report.
class ProgramStep {
 public:
  void Begin(uint64_t samples);
  uint64_t samples() const { return samples_; }
  void AddGradient(int index, const ParameterSpec& parameter,
                   const float* gradient) {
    sample_.Add(index, parameter, gradient);
  }
  void AddPush(double seconds) { push_seconds_ += seconds; }

  // Returns the report; the caller adds number, epoch, rate and `skipped`.
  // dropped: the other ranks did not wait for this gradient. traffic: since the
  // synchronizer began.
  v1::StepReport Finish(const Session::StepResult& result, double wait_seconds,
                        bool dropped,
                        const GradientSynchronizer::Traffic& traffic);

 private:
  uint64_t samples_ = 0;
  double push_seconds_ = 0;
  GradientSample sample_;
  GradientSynchronizer::Traffic before_;
};

}  // namespace tributary
