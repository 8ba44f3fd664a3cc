#pragma once

#include "absl/status/status.h"
#include "common/status/place.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// What no field can tell by itself: that the parts of a job fit each other.
// The job's fields are resolved.
absl::Status ValidateJob(const Places& places, const v1::JobSpec& job);

// The layers follow each other and the loss fits the last one.
absl::Status ValidateModel(const Places& places, const v1::JobSpec& job);

// Sources, their columns and normalization, the training and the test set.
absl::Status ValidateData(const Places& places, const v1::JobSpec& job);

// Optimizer, schedule, and the batch over the workers.
absl::Status ValidateTraining(const Places& places, const v1::JobSpec& job);

// `who`, whom the block at `path` lets compute with parts of the same weights,
// must all see the same version of them: plain bsp.
absl::Status ValidateGroupSync(const Places& places, const std::string& path,
                               const std::string& who,
                               const v1::SyncSpec& sync);
// What strategy.tensor_parallel asks of workers, layers and synchronization.
absl::Status ValidateTensorParallel(const Places& places,
                                    const v1::JobSpec& job);
// What strategy.pipeline_parallel asks of workers, layers, the batch and
// synchronization.
absl::Status ValidatePipelineParallel(const Places& places,
                                      const v1::JobSpec& job);

// The tensors of model.initialize_from are the model's parameters. Its path is
// resolved.
absl::Status ValidateInitialWeights(const Places& places,
                                    const v1::JobSpec& job);

}  // namespace tributary
