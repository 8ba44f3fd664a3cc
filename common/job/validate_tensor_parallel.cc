#include <string>

#include "absl/strings/str_cat.h"
#include "common/job/validate.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr char kTensorPath[] = "strategy.tensor_parallel";

// Every rank gets whole heads, and as many as the others.
absl::Status CheckHeads(
    const Places& places, const std::string& path,
    const google::protobuf::RepeatedPtrField<v1::LayerSpec>& layers,
    int ranks) {
  for (int i = 0; i < layers.size(); ++i) {
    const v1::LayerSpec& layer = layers[i];
    const std::string own = absl::StrCat(path, ".", i);
    if (layer.has_attention() && layer.attention().heads() % ranks != 0) {
      const std::string heads = own + ".attention.heads";
      return places.Error(heads, heads, " must be a multiple of ", kTensorPath,
                          ".ranks, ", ranks, ", got ",
                          layer.attention().heads());
    }
    if (!layer.has_residual()) continue;
    TRIBUTARY_RETURN_IF_ERROR(CheckHeads(places, own + ".residual.body",
                                         layer.residual().body(), ranks));
    TRIBUTARY_RETURN_IF_ERROR(CheckHeads(places, own + ".residual.shortcut",
                                         layer.residual().shortcut(), ranks));
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
  if (job.training().optimizer().has_lamb()) {
    return places.Error(
        "training.optimizer.lamb", "training.optimizer.lamb",
        " wants whole tensors for its trust ratio; the job has ", kTensorPath);
  }
  if (job.strategy().has_parameter_server()) {
    TRIBUTARY_RETURN_IF_ERROR(
        ValidateGroupSync(places, kTensorPath, "the workers of a group",
                          job.strategy().parameter_server().sync()));
  }
  return CheckHeads(places, "model.sequential", job.model().sequential(),
                    ranks);
}

}  // namespace tributary
