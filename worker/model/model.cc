#include "worker/model/model.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/check.h"
#include "common/status_macros.h"

namespace tributary {
namespace {

constexpr int64_t kAlignment = 64 / sizeof(float);

int64_t RoundUp(int64_t elements) {
  return (elements + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Create(const v1::ModelSpec& spec,
                                                     const Shape& sample_shape,
                                                     const Options& options) {
  TRIBUTARY_CHECK(options.ops != nullptr);
  if (options.max_rows < 1 || NumElements(sample_shape) < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a model wants batches of at least one sample with at least one "
        "element, got ",
        options.max_rows, " samples of shape [",
        absl::StrJoin(sample_shape, ", "), "]"));
  }
  std::unique_ptr<Model> model(new Model(options.ops, options.max_rows));
  model->sample_size_ = NumElements(sample_shape);
  TRIBUTARY_ASSIGN_OR_RETURN(model->stack_,
                             LayerStack::Create(spec.sequential(), sample_shape,
                                                {.ops = options.ops,
                                                 .max_rows = options.max_rows,
                                                 .scratch = &model->scratch_,
                                                 .first = true,
                                                 .seed = options.seed}));
  if (model->parameters().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a model wants at least one layer with parameters, got ",
                     spec.sequential_size(), " layers without any"));
  }
  TRIBUTARY_RETURN_IF_ERROR(model->PlaceParameters());
  TRIBUTARY_RETURN_IF_ERROR(model->Tie());
  TRIBUTARY_RETURN_IF_ERROR(model->stack_->Place(/*input_gradient=*/false));
  TRIBUTARY_RETURN_IF_ERROR(model->scratch_.Allocate(options.ops));
  return model;
}

absl::Status Model::PlaceParameters() {
  int64_t size = 0;
  for (const ParameterSpec& parameter : parameters()) {
    offsets_.push_back(size);
    size += RoundUp(parameter.size());
  }
  TRIBUTARY_ASSIGN_OR_RETURN(weights_,
                             DeviceArray<float>::Allocate(ops_, size));
  TRIBUTARY_ASSIGN_OR_RETURN(gradients_,
                             DeviceArray<float>::Allocate(ops_, size));
  ops_->Fill(size, 0, weights_.data());
  ops_->Fill(size, 0, gradients_.data());

  std::vector<float*> weights, gradients;
  for (size_t i = 0; i < parameters().size(); ++i) {
    weights.push_back(weight(static_cast<int>(i)));
    gradients.push_back(gradient(static_cast<int>(i)));
  }
  stack_->Bind(weights, gradients);
  if (!ops_->is_host()) {
    TRIBUTARY_ASSIGN_OR_RETURN(features_, DeviceArray<float>::Allocate(
                                              ops_, max_rows_ * sample_size_));
  }
  return absl::OkStatus();
}

absl::Status Model::Tie() {
  for (size_t i = 0; i < stack_->layers().size(); ++i) {
    Layer& layer = *stack_->layers()[i];
    if (layer.tied_to().empty()) continue;
    int owned = 0;  // CreateLayer has found it among the layers before
    while (parameters()[owned].name != layer.tied_to()) ++owned;
    if (!stack_->layers()[stack_->LayerOf(owned)]->ShareGradient()) {
      return absl::InvalidArgumentError(
          absl::StrCat("layer ", i, ": ", layer.tied_to(),
                       " is no embedding's weight, so it can't be shared"));
    }
    layer.BindTied(weight(owned), gradient(owned));
  }
  return absl::OkStatus();
}

const float* Model::Forward(const float* features, int64_t rows,
                            const ForwardContext& context) {
  TRIBUTARY_CHECK(rows >= 0 && rows <= max_rows_);
  if (!ops_->is_host()) {
    ops_->CopyIn(features_.data(), features,
                 rows * sample_size_ * sizeof(float));
    features = features_.data();
  }
  return stack_->Forward(context, rows, features);
}

void Model::Backward(const float* d_logits, bool accumulate,
                     const std::function<void(int parameter)>& gradient_ready) {
  stack_->Backward(d_logits, accumulate, [&](int parameter) {
    if (gradient_ready) gradient_ready(parameter);
  });
}

}  // namespace tributary
