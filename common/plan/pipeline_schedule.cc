// SPDX-License-Identifier: Apache-2.0
#include "common/plan/pipeline_schedule.h"

#include <algorithm>

#include "common/base/check.h"

namespace tributary {

std::vector<PipelineTask> MakePipelineTasks(PipelineSchedule schedule,
                                            int stage, int stages,
                                            int micro_batches) {
  using Kind = PipelineTask::Kind;
  // Forward passes before the first one that a backward pass follows.
  const int ahead =
      ActivationsInFlight(schedule, stage, stages, micro_batches) - 1;
  std::vector<PipelineTask> tasks;
  for (int i = 0; i < ahead; ++i) tasks.push_back({Kind::kForward, i});
  for (int i = 0; i < micro_batches; ++i) {
    if (i + ahead < micro_batches) {
      tasks.push_back({Kind::kForward, i + ahead});
    }
    tasks.push_back({Kind::kBackward, i});
  }
  return tasks;
}

int ActivationsInFlight(PipelineSchedule schedule, int stage, int stages,
                        int micro_batches) {
  TRIBUTARY_CHECK(stage >= 0 && stage < stages && micro_batches >= 0);
  return schedule == PipelineSchedule::kGpipe
             ? micro_batches
             : std::min(stages - stage, micro_batches);
}

}  // namespace tributary
