#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/ops.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/job.pb.h"
#include "worker/model/loss.h"
#include "worker/model/model.h"

namespace tributary {

// Samples to be judged, in host memory, valid until the next batch is asked
// for.
struct EvaluationBatch {
  const float* features = nullptr;  // [rows, sample]
  LossTargets targets;
  int64_t rows = 0;  // 0: there are no more
};

// Runs the model over batches until there are no more, and gives the sums that
// common/metrics turns into metrics. `loss` is the one that `spec` made, for
// the model's outputs. The ranks of a tensor-parallel group call it together,
// with the same batches, and get the same sums. Passes on the errors of
// next_batch and of the loss.
absl::StatusOr<v1::EvaluationPart> EvaluateModel(
    Ops* ops, Model* model, Loss* loss, const v1::LossSpec& spec,
    absl::FunctionRef<absl::StatusOr<EvaluationBatch>()> next_batch);

// The same for a model whose output `forward` gives, [rows, outputs of a
// sample], valid until it is asked again: the end of a pipeline. Passes on its
// errors, too.
absl::StatusOr<v1::EvaluationPart> EvaluateOutputs(
    Ops* ops, const Shape& output_shape, Loss* loss, const v1::LossSpec& spec,
    absl::FunctionRef<absl::StatusOr<EvaluationBatch>()> next_batch,
    absl::FunctionRef<absl::StatusOr<const float*>(const EvaluationBatch&)>
        forward);

}  // namespace tributary
