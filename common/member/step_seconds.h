// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// The parts of a step's time, in seconds. `step` is the sum of data,
// compute, push, exchange, idle and wait.
struct StepSeconds {
  double step = 0;
  double data = 0;       // waiting for a batch
  double compute = 0;    // forward and backward
  double push = 0;       // during backward, to hand over gradients
  double exchange = 0;   // with the ranks that hold other parts of the model
  double idle = 0;       // waiting for other stages of a pipeline
  double wait = 0;       // after backward, until the weights are updated
  double optimizer = 0;  // part of wait: the workers' own optimizer
};

// Every field of StepSeconds, its name in files and metrics (with "_seconds"
// added), and the field of a report.
struct StepSecondsField {
  const char* name;
  double StepSeconds::*seconds;
  double (v1::StepReport::*get)() const;
  void (v1::StepReport::*set)(double);
};
inline constexpr StepSecondsField kStepSeconds[] = {
    {"step", &StepSeconds::step, &v1::StepReport::step_seconds,
     &v1::StepReport::set_step_seconds},
    {"data", &StepSeconds::data, &v1::StepReport::data_seconds,
     &v1::StepReport::set_data_seconds},
    {"compute", &StepSeconds::compute, &v1::StepReport::compute_seconds,
     &v1::StepReport::set_compute_seconds},
    {"push", &StepSeconds::push, &v1::StepReport::push_seconds,
     &v1::StepReport::set_push_seconds},
    {"exchange", &StepSeconds::exchange, &v1::StepReport::exchange_seconds,
     &v1::StepReport::set_exchange_seconds},
    {"idle", &StepSeconds::idle, &v1::StepReport::idle_seconds,
     &v1::StepReport::set_idle_seconds},
    {"wait", &StepSeconds::wait, &v1::StepReport::wait_seconds,
     &v1::StepReport::set_wait_seconds},
    {"optimizer", &StepSeconds::optimizer, &v1::StepReport::optimizer_seconds,
     &v1::StepReport::set_optimizer_seconds},
};

// Adds `share` times the seconds of the report.
inline void AddSeconds(const v1::StepReport& report, double share,
                       StepSeconds* sum) {
  for (const StepSecondsField& field : kStepSeconds) {
    sum->*field.seconds += share * (report.*field.get)();
  }
}

}  // namespace tributary
