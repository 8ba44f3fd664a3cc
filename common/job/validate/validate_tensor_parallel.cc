// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/str_cat.h"
#include "common/job/optimizer_spec.h"
#include "common/job/validate/validate.h"
#include "common/layers/layer_kind.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr char kTensorPath[] = "strategy.tensor_parallel";

// Some extents, such as attention heads, must be a multiple of the ranks.
absl::Status CheckMultiples(
    const Places& places, const std::string& path,
    const google::protobuf::RepeatedPtrField<v1::LayerSpec>& layers,
    int ranks) {
  for (int i = 0; i < layers.size(); ++i) {
    const std::string own =
        absl::StrCat(path, ".", i, ".", LayerKindName(layers[i]));
    if (layers[i].has_residual()) {
      const v1::ResidualSpec& residual = layers[i].residual();
      TRIBUTARY_RETURN_IF_ERROR(
          CheckMultiples(places, own + ".body", residual.body(), ranks));
      TRIBUTARY_RETURN_IF_ERROR(CheckMultiples(places, own + ".shortcut",
                                               residual.shortcut(), ranks));
    }
    const LayerKind* kind = KindOf(layers[i]);
    if (kind == nullptr) continue;
    std::string field;
    const int64_t number = kind->MultipleOfRanks(layers[i], &field);
    if (number % ranks == 0) continue;
    return places.Error(own + field, own + field, " must be a multiple of ",
                        kTensorPath, ".ranks, ", ranks, ", got ", number);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateTensorParallel(const Places& places,
                                    const v1::JobSpec& job) {
  const int ranks = job.strategy().tensor_parallel().ranks();
  if (ranks <= 1) return absl::OkStatus();
  const int workers = job.cluster().workers();
  if (workers % ranks != 0) {
    const std::string path = absl::StrCat(kTensorPath, ".ranks");
    return places.Error(path, path, " must divide the number of workers, ",
                        workers, ", got ", ranks);
  }
  if (job.cluster().on_worker_loss() == v1::WORKER_LOSS_SHRINK) {
    return places.Error("cluster.on_worker_loss",
                        "cluster.on_worker_loss: shrink wants workers with "
                        "whole models; the job has ",
                        kTensorPath);
  }
  if (NeedsWholeTensors(job.training().optimizer())) {
    const std::string field = absl::StrCat(
        "training.optimizer.", OptimizerName(job.training().optimizer()));
    return places.Error(field, field,
                        " wants whole tensors for its norms; the job has ",
                        kTensorPath);
  }
  if (job.strategy().has_parameter_server()) {
    TRIBUTARY_RETURN_IF_ERROR(
        ValidateGroupSync(places, kTensorPath, "the workers of a group", job));
  }
  return CheckMultiples(places, "model.sequential", job.model().sequential(),
                        ranks);
}

}  // namespace tributary
