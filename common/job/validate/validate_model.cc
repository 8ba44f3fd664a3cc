// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/job/job_options.h"
#include "common/job/sources/source_kind.h"
#include "common/job/validate/validate.h"
#include "common/layers/layer_chain.h"
#include "common/layers/layer_kind.h"
#include "common/layers/model_parameters.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr double kMaxParameters = 1LL << 40;  // 4 TiB of float32

std::string LayerPath(int layer) {
  return absl::StrCat("model.sequential.", layer);
}

absl::Status CheckSize(const Places& places, const v1::ModelSpec& model) {
  double parameters = 0;
  for (const ParameterSpec& spec : ModelParameters(model)) {
    double elements = 1;
    for (int64_t extent : spec.shape) elements *= static_cast<double>(extent);
    parameters += elements;
  }
  if (parameters == 0) {
    return places.Error("model.sequential",
                        "model.sequential has no layer with weights");
  }
  if (parameters > kMaxParameters) {
    return places.Error("model.sequential", "model.sequential has ", parameters,
                        " parameters, wants at most ", kMaxParameters);
  }
  return absl::OkStatus();
}

// Every source has one label per row or per token, so only cross entropy allows
// more than one output. `width`: the last layer's; 0 if it depends on images.
absl::Status CheckLoss(const Places& places, const v1::LossSpec& loss,
                       int64_t width) {
  if (width == 0) return absl::OkStatus();
  if (loss.has_cross_entropy() && width < 2) {
    return places.Error("training.loss",
                        "cross_entropy wants a last layer with at least 2 "
                        "outputs, one a class; the model has 1");
  }
  if (!loss.has_cross_entropy() && width != 1) {
    return places.Error(
        "training.loss", loss.has_mse() ? "mse" : "bce_with_logits",
        " wants a last layer with 1 output; the model has ", width);
  }
  return absl::OkStatus();
}

// A batch norm over a single sample would output nothing but its bias.
absl::Status CheckBatch(const Places& places, const v1::JobSpec& job,
                        const std::string& batch_norm) {
  if (batch_norm.empty()) return absl::OkStatus();
  const int64_t samples =
      job.data().has_global_batch_size()
          ? job.data().global_batch_size() / StrategyOf(job).mesh().data
          : job.data().batch_size();
  const int64_t parts =
      std::max(1, job.strategy().pipeline_parallel().micro_batches());
  if (samples / parts >= 2) return absl::OkStatus();
  return places.Error(batch_norm, batch_norm, " wants at least 2 samples in ",
                      parts > 1 ? "every micro-batch" : "every worker's batch",
                      ", got ", samples / parts);
}

absl::Status CheckFirstLayer(const Places& places, const v1::JobSpec& job) {
  const LayerKind* first = KindOf(job.model().sequential(0));
  if (SequenceLengthOf(job.data().train()) > 0) {
    if (first != nullptr && first->takes_tokens()) return absl::OkStatus();
    return places.Error(LayerPath(0), LayerPath(0),
                        " must be an embedding: data.train makes tokens");
  }
  const int64_t width = SampleWidthOf(job.data().train());
  if (width == 0) return absl::OkStatus();
  for (int i = 0; i < job.model().sequential_size(); ++i) {
    const v1::LayerSpec& layer = job.model().sequential(i);
    const LayerKind* kind = KindOf(layer);
    if (kind == nullptr) return absl::OkStatus();
    std::string field;
    const int64_t wanted = kind->WantedFeatures(layer, &field);
    if (wanted == 0 && kind->keeps_features()) continue;
    if (wanted == 0 || wanted == width) return absl::OkStatus();
    const std::string path =
        absl::StrCat(LayerPath(i), ".", LayerKindName(layer), field);
    return places.Error(path, path, " is ", wanted, ", but data.train makes ",
                        width, " features");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateModel(const Places& places, const v1::JobSpec& job) {
  LayerChain chain(places, job.model());
  TRIBUTARY_RETURN_IF_ERROR(chain.Check());
  TRIBUTARY_RETURN_IF_ERROR(CheckSize(places, job.model()));
  TRIBUTARY_RETURN_IF_ERROR(CheckFirstLayer(places, job));
  TRIBUTARY_RETURN_IF_ERROR(CheckBatch(places, job, chain.batch_statistics()));
  return CheckLoss(places, job.training().loss(), chain.width().features);
}

}  // namespace tributary
