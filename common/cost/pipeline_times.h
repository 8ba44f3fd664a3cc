// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/cost/cost_inputs.h"

namespace tributary {

// The work of a stage for one micro-batch.
struct StageTime {
  double forward_seconds = 0;
  double backward_seconds = 0;
  // Bytes of output sent to the next stage; the gradient that comes back has
  // as many.
  double output_bytes = 0;
};

struct PipelineTimes {
  double end_seconds = 0;                    // end of the last backward pass
  std::vector<double> last_backward_begins;  // [stage]
  std::vector<double> last_backward_ends;
  std::vector<int> most_in_flight;  // micro-batches that a stage keeps at once
};

// Simulates a batch of `micro_batches` in the stages. Every stage runs its
// passes in the order of the schedule, each as soon as its input has arrived;
// sends run concurrently.
PipelineTimes ReplayPipeline(const std::vector<StageTime>& stages,
                             int micro_batches, PipelineSchedule schedule,
                             const ClusterShape& cluster);

}  // namespace tributary
