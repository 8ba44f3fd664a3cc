// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/status/place.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Checks that the parts of a job fit together, which no single field shows. The
// job's fields are resolved.
absl::Status ValidateJob(const Places& places, const v1::JobSpec& job);

// Checks that the layers follow each other and that the loss fits the last one.
absl::Status ValidateModel(const Places& places, const v1::JobSpec& job);

// Checks that a program's job has no field that only the trainer of a model in
// the job file follows. The job's fields need not be resolved.
absl::Status ValidateProgram(const Places& places, const v1::JobSpec& job);

// Checks sources, their columns and normalization, the training and the test
// set.
absl::Status ValidateData(const Places& places, const v1::JobSpec& job);

// Checks that the job can make the decisions that depend on its evaluations.
absl::Status ValidateEvaluation(const Places& places, const v1::JobSpec& job);

// Checks optimizer, schedule, and the batch per worker.
absl::Status ValidateTraining(const Places& places, const v1::JobSpec& job);

// Checks the constants of an optimizer at `path`.
absl::Status ValidateOptimizer(const Places& places, const std::string& path,
                               const v1::OptimizerSpec& optimizer);
// Checks that the groups name parameters of the model, if the job has one, and
// that their optimizers keep the same states.
absl::Status ValidateParameterGroups(const Places& places,
                                     const v1::JobSpec& job);

// Checks the formats of gradients and weights in messages, and what error
// feedback requires of synchronization and cluster.
absl::Status ValidateWire(const Places& places, const v1::JobSpec& job);

// Checks that the job uses plain bsp: the block at `path` makes `who` compute
// with parts of the same weights, so all of them must use the same version.
absl::Status ValidateGroupSync(const Places& places, const std::string& path,
                               const std::string& who, const v1::JobSpec& job);
// Checks what strategy.tensor_parallel requires of workers, layers and
// synchronization.
absl::Status ValidateTensorParallel(const Places& places,
                                    const v1::JobSpec& job);
// Checks what strategy.pipeline_parallel requires of workers, layers, the batch
// and synchronization.
absl::Status ValidatePipelineParallel(const Places& places,
                                      const v1::JobSpec& job);

// Checks that the file of model.initialize_from, whose path is resolved, and
// model.initialize_rules give every parameter of the model its first values.
absl::Status ValidateInitialWeights(const Places& places,
                                    const v1::JobSpec& job);

}  // namespace tributary
