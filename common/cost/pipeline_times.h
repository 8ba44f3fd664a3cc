#pragma once

#include <cstdint>
#include <vector>

#include "common/cost/cost_inputs.h"

namespace tributary {

// What a stage does for one micro-batch.
struct StageTime {
  double forward_seconds = 0;
  double backward_seconds = 0;
  // Bytes of its output to the next stage, and as many back as gradient.
  double output_bytes = 0;
};

struct PipelineTimes {
  double end_seconds = 0;                    // of the last backward pass
  std::vector<double> last_backward_begins;  // of each stage
  std::vector<double> last_backward_ends;
  std::vector<int> most_in_flight;  // micro-batches that a stage keeps at once
};

// Replays a batch of `micro_batches` through the stages: every stage does its
// passes in the order of the schedule, each as soon as what it needs has
// arrived; sends go on beside.
PipelineTimes ReplayPipeline(const std::vector<StageTime>& stages,
                             int micro_batches, PipelineSchedule schedule,
                             const ClusterShape& cluster);

}  // namespace tributary
