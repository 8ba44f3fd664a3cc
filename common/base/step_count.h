// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tributary {

// Converts between the steps of a job and the versions of its servers' blocks.
// A version counts updates.
struct StepCount {
  // Steps of each worker that an update covers: the period of local_sgd,
  // otherwise 1.
  int64_t steps_an_update = 1;
  // Updates that a step of all workers makes: the number of workers if each
  // contribution is applied by itself, otherwise 1.
  int64_t updates_a_step = 1;

  // The version once every worker has finished `steps` steps. The last update
  // of a job may cover fewer steps than the others.
  int64_t VersionAfter(int64_t steps) const {
    return (steps + steps_an_update - 1) / steps_an_update * updates_a_step;
  }
  // The steps that all workers have contributed to a version.
  int64_t StepsIn(int64_t version) const {
    return version / updates_a_step * steps_an_update;
  }
};

}  // namespace tributary
