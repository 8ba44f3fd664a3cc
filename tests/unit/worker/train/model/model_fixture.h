// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/layers/layer_kind.h"
#include "kernels/ops.h"
#include "worker/train/model/model.h"

namespace tributary::testing {

using Floats = std::vector<float>;

// Parses protobuf's text format and gives a model its defaults; a mistake fails
// the test.
template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message))
      << text;
  if constexpr (std::is_same_v<Message, v1::ModelSpec>) ResolveLayers(&message);
  return message;
}

// n numbers in [-1, 1), the same for the same seed.
inline Floats Noise(int64_t n, uint64_t seed) {
  Floats out(static_cast<size_t>(n));
  uint64_t state = seed * 2654435761u + 12345;
  for (float& x : out) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<float>(static_cast<int32_t>(state >> 32)) * 0x1p-31f;
  }
  return out;
}

// The index of the parameter with this name.
inline int PlaceOf(const ParameterSpecs& parameters, const std::string& name) {
  size_t place = 0;
  while (place < parameters.size() && parameters[place].name != name) ++place;
  EXPECT_LT(place, parameters.size()) << name;
  return static_cast<int>(place);
}

// A model on the CPU with weights from Noise.
class CpuModel {
 public:
  CpuModel(const std::string& layers, const Shape& sample_shape,
           int64_t max_rows, uint64_t seed = 1)
      : ops_(CreateCpuOps()) {
    auto model =
        Model::Create(FromText<v1::ModelSpec>(layers), sample_shape,
                      {.ops = ops_.get(), .max_rows = max_rows, .seed = seed});
    EXPECT_TRUE(model.ok()) << model.status();
    if (!model.ok()) return;
    model_ = *std::move(model);
    for (int p = 0; p < num_parameters(); ++p) {
      SetWeight(p, Noise(Size(p), static_cast<uint64_t>(p) + 100));
    }
  }

  Ops& ops() { return *ops_; }
  Model& operator*() { return *model_; }
  Model* operator->() { return model_.get(); }

  int num_parameters() const {
    return static_cast<int>(model_->parameters().size());
  }
  int64_t Size(int p) const { return model_->parameters()[p].size(); }
  void SetWeight(int p, const Floats& values) {
    ops_->CopyIn(model_->weight(p), values.data(),
                 values.size() * sizeof(float));
  }
  Floats Gradient(int p) {
    const float* g = model_->gradient(p);
    return Floats(g, g + Size(p));
  }
  std::vector<Floats> Gradients() {
    std::vector<Floats> all;
    for (int p = 0; p < num_parameters(); ++p) all.push_back(Gradient(p));
    return all;
  }
  // The features must live until Backward.
  Floats Forward(const Floats& features, int64_t rows,
                 const ForwardContext& context = {}) {
    const float* y = model_->Forward(features.data(), rows, context);
    return Floats(y, y + rows * model_->output_size());
  }

 private:
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Model> model_;
};

}  // namespace tributary::testing
