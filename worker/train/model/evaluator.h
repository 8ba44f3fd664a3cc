// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/ops.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/job.pb.h"
#include "worker/train/model/loss.h"
#include "worker/train/model/model.h"

namespace tributary {

// Samples to evaluate, in host memory, valid until the next call of next_batch.
struct EvaluationBatch {
  const float* features = nullptr;  // [rows, sample]
  LossTargets targets;
  int64_t rows = 0;  // 0: there are no more batches
};

// Runs the model over all batches and returns the sums from which
// common/evaluation computes metrics. `loss` must be made from `spec` for the
// model's outputs. The ranks of a tensor-parallel group must call it together
// with the same batches, and get the same sums. Returns errors of next_batch
// and of the loss.
absl::StatusOr<v1::EvaluationPart> EvaluateModel(
    Ops* ops, Model* model, Loss* loss, const v1::LossSpec& spec,
    absl::FunctionRef<absl::StatusOr<EvaluationBatch>()> next_batch);

// The same for the end of a pipeline: `forward` returns the output of a batch,
// [rows, outputs per sample], valid until its next call. Returns its errors
// too.
absl::StatusOr<v1::EvaluationPart> EvaluateOutputs(
    Ops* ops, const Shape& output_shape, Loss* loss, const v1::LossSpec& spec,
    absl::FunctionRef<absl::StatusOr<EvaluationBatch>()> next_batch,
    absl::FunctionRef<absl::StatusOr<const float*>(const EvaluationBatch&)>
        forward);

}  // namespace tributary
