// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/str_cat.h"
#include "common/job/job_options.h"
#include "common/job/validate/validate.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr char kPipelinePath[] = "strategy.pipeline_parallel";
constexpr char kStages[] = "strategy.pipeline_parallel.stages";
constexpr char kMicroBatches[] = "strategy.pipeline_parallel.micro_batches";

// Every micro-batch needs at least one sample. Stages would wait forever for an
// empty micro-batch.
absl::Status CheckBatch(const Places& places, const v1::JobSpec& job) {
  const v1::PipelineParallelSpec& pipeline = job.strategy().pipeline_parallel();
  const int64_t pipelines = StrategyOf(job).mesh().data;
  const int64_t samples = job.data().has_global_batch_size()
                              ? job.data().global_batch_size() / pipelines
                              : job.data().batch_size();
  if (pipeline.micro_batches() <= samples) return absl::OkStatus();
  return places.Error(kMicroBatches, kMicroBatches,
                      " must be at most the samples of a pipeline's batch, ",
                      samples, ", got ", pipeline.micro_batches());
}

}  // namespace

absl::Status ValidatePipelineParallel(const Places& places,
                                      const v1::JobSpec& job) {
  if (!job.strategy().has_pipeline_parallel()) return absl::OkStatus();
  const int stages = job.strategy().pipeline_parallel().stages();
  const int workers = job.cluster().workers();
  if (workers % stages != 0) {
    return places.Error(kStages, kStages,
                        " must divide the number of workers, ", workers,
                        ", got ", stages);
  }
  const int ranks = StrategyOf(job).mesh().tensor;
  if (workers % (stages * ranks) != 0) {
    return places.Error(kStages, kStages,
                        " times strategy.tensor_parallel.ranks must divide the "
                        "number of workers, ",
                        workers, ", got ", stages, " times ", ranks);
  }
  if (stages > job.model().sequential_size()) {
    return places.Error(kStages, kStages,
                        " must be at most the number of layers, ",
                        job.model().sequential_size(), ", got ", stages);
  }
  if (job.cluster().on_worker_loss() == v1::WORKER_LOSS_SHRINK && stages > 1) {
    return places.Error("cluster.on_worker_loss",
                        "cluster.on_worker_loss: shrink wants workers with "
                        "whole models; the job has ",
                        kPipelinePath);
  }
  if (stages > 1 && job.strategy().has_parameter_server()) {
    TRIBUTARY_RETURN_IF_ERROR(ValidateGroupSync(
        places, kPipelinePath, "the stages of a pipeline", job));
  }
  return CheckBatch(places, job);
}

}  // namespace tributary
