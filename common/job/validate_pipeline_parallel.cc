#include <string>

#include "absl/strings/str_cat.h"
#include "common/job/job_options.h"
#include "common/job/validate.h"
#include "common/status_macros.h"

namespace tributary {
namespace {

constexpr char kPath[] = "strategy.pipeline_parallel";
constexpr char kStages[] = "strategy.pipeline_parallel.stages";
constexpr char kMicroBatches[] = "strategy.pipeline_parallel.micro_batches";

// A micro-batch without a sample would leave stages waiting for nothing.
absl::Status CheckBatch(const Places& places, const v1::JobSpec& job) {
  const v1::PipelineParallelSpec& pipeline = job.strategy().pipeline_parallel();
  const int64_t pipelines = DeviceMeshOf(job).data;
  const int64_t samples = job.data().has_global_batch_size()
                              ? job.data().global_batch_size() / pipelines
                              : job.data().batch_size();
  if (pipeline.micro_batches() <= samples) return absl::OkStatus();
  return places.Error(kMicroBatches, kMicroBatches,
                      " must be at most the samples of a pipeline's batch, ",
                      samples, ", got ", pipeline.micro_batches());
}

// The stages of a pipeline compute with parts of the same weights, so that all
// must see the same version of them.
absl::Status CheckSync(const Places& places, const v1::SyncSpec& sync) {
  const char* other = sync.has_ssp()         ? "ssp"
                      : sync.has_async()     ? "async"
                      : sync.has_local_sgd() ? "local_sgd"
                                             : nullptr;
  if (other != nullptr) {
    return places.Error(kPath, kPath,
                        " wants sync bsp, where the stages of a pipeline have "
                        "the same weights; the job says ",
                        other);
  }
  if (sync.bsp().backup_workers() > 0) {
    return places.Error(kPath, kPath,
                        " wants every worker's gradient to count; the job has "
                        "backup_workers: ",
                        sync.bsp().backup_workers());
  }
  return absl::OkStatus();
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
  const int ranks = DeviceMeshOf(job).tensor;
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
                        kPath);
  }
  if (stages > 1 && job.strategy().has_parameter_server()) {
    TRIBUTARY_RETURN_IF_ERROR(
        CheckSync(places, job.strategy().parameter_server().sync()));
  }
  return CheckBatch(places, job);
}

}  // namespace tributary
