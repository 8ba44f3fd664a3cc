#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/job/model_parameters.h"
#include "common/job/validate.h"
#include "common/status_macros.h"

namespace tributary {
namespace {

constexpr int kMaxLayers = 10'000;
constexpr double kMaxParameters = 1LL << 40;  // 4 TiB of float32

std::string LayerPath(int layer) {
  return absl::StrCat("model.sequential.", layer);
}

// Follows a sample's width through the layers.
class WidthChain {
 public:
  explicit WidthChain(const Places& places) : places_(places) {}

  int64_t width() const { return width_; }  // 0 while no layer has told

  absl::Status Enter(int index, const v1::LayerSpec& layer) {
    if (layer.has_linear()) {
      TRIBUTARY_RETURN_IF_ERROR(Want(
          absl::StrCat(LayerPath(index), ".linear.in"), layer.linear().in()));
      width_ = layer.linear().out();
      width_path_ = absl::StrCat(LayerPath(index), ".linear.out");
    } else if (layer.has_layernorm()) {
      const std::string path =
          absl::StrCat(LayerPath(index), ".layernorm.features");
      TRIBUTARY_RETURN_IF_ERROR(Want(path, layer.layernorm().features()));
      width_ = layer.layernorm().features();
      width_path_ = path;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Want(const std::string& path, int64_t wanted) const {
    if (width_ == 0 || width_ == wanted) return absl::OkStatus();
    return places_.Error(path, path, " is ", wanted, ", but ", width_path_,
                         " makes ", width_, " features");
  }

  const Places& places_;
  int64_t width_ = 0;
  std::string width_path_;
};

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

// Every source has one label a row, so that only cross entropy takes more than
// one output.
absl::Status CheckLoss(const Places& places, const v1::LossSpec& loss,
                       int64_t width) {
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

// Width of a generated sample (docs/formats.md); 0 for what comes from files.
int64_t SyntheticWidth(const v1::DataSource& source) {
  switch (source.synthetic().kind()) {
    case v1::SyntheticSource::CTR:
      return 21;
    case v1::SyntheticSource::LINEAR:
      return 20;
    case v1::SyntheticSource::MLP_TEACHER:
      return 16;
    case v1::SyntheticSource::MARKOV_TEXT:
      return 32;
    default:
      return 0;
  }
}

absl::Status CheckFirstLayer(const Places& places, const v1::JobSpec& job) {
  const int64_t width = SyntheticWidth(job.data().train());
  if (width == 0) return absl::OkStatus();
  for (int i = 0; i < job.model().sequential_size(); ++i) {
    const v1::LayerSpec& layer = job.model().sequential(i);
    const int64_t wanted =
        layer.has_linear() ? layer.linear().in() : layer.layernorm().features();
    if (wanted == 0) continue;
    if (wanted == width) return absl::OkStatus();
    const std::string path =
        absl::StrCat(LayerPath(i),
                     layer.has_linear() ? ".linear.in" : ".layernorm.features");
    return places.Error(path, path, " is ", wanted, ", but data.train makes ",
                        width, " features");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateModel(const Places& places, const v1::JobSpec& job) {
  const v1::ModelSpec& model = job.model();
  if (model.sequential_size() > kMaxLayers) {
    return places.Error("model.sequential", "model.sequential wants at most ",
                        kMaxLayers, " layers, got ", model.sequential_size());
  }
  WidthChain chain(places);
  for (int i = 0; i < model.sequential_size(); ++i) {
    TRIBUTARY_RETURN_IF_ERROR(chain.Enter(i, model.sequential(i)));
  }
  TRIBUTARY_RETURN_IF_ERROR(CheckSize(places, model));
  TRIBUTARY_RETURN_IF_ERROR(CheckFirstLayer(places, job));
  return CheckLoss(places, job.training().loss(), chain.width());
}

}  // namespace tributary
