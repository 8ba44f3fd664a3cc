#pragma once

#include <vector>

namespace tributary {

// In which order a stage of a pipeline computes on the micro-batches of a step.
// With p stages and m micro-batches both leave a stage idle for
// (p - 1) / (m + p - 1) of the time, but hold different numbers of activations.
enum class PipelineSchedule {
  // All forward passes, then all backward passes (Huang et al., NeurIPS 2019):
  // m activations at a time. Backward goes in forward's order, so that the sums
  // of gradients have the bits of 1F1B's.
  kGpipe,
  // As few forward passes as keep the later stages busy, then one backward for
  // each forward (PipeDream-flush: Narayanan et al., SC 2021): at most p - s
  // activations at a time on stage s, from 0.
  kOneForwardOneBackward,
};

struct PipelineTask {
  enum class Kind { kForward, kBackward };
  Kind kind = Kind::kForward;
  int micro_batch = 0;
};

// What stage `stage` of `stages` does in a step, in order. Each pass needs the
// same micro-batch's forward pass of the stage before or backward pass of the
// stage after.
std::vector<PipelineTask> MakePipelineTasks(PipelineSchedule schedule,
                                            int stage, int stages,
                                            int micro_batches);

// The most micro-batches at a time between forward and backward on a stage.
int ActivationsInFlight(PipelineSchedule schedule, int stage, int stages,
                        int micro_batches);

}  // namespace tributary
