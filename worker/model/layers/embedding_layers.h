#pragma once

#include <string>
#include <utility>

#include "worker/model/device_array.h"
#include "worker/model/layer.h"

namespace tributary {

// As torch.nn.Embedding: token ids, which travel as float32, to vectors.
// x: [...], y: [..., dim], weight: [tokens, dim]. A tied layer may use the
// weight too: its gradient comes first and this layer's is added. A rank may
// have only some tokens, whose range says so: the others become zeros.
class EmbeddingLayer final : public Layer {
 public:
  // ids: one for each token of the largest batch.
  EmbeddingLayer(Ops* ops, Shape input_shape, Shape output_shape,
                 const ClassRange& tokens, int64_t dim,
                 DeviceArray<int64_t> ids)
      : Layer(ops, std::move(input_shape), std::move(output_shape)),
        tokens_(tokens),
        dim_(dim),
        ids_(std::move(ids)) {}

  ParameterSpecs parameters() const override;
  void Bind(absl::Span<float* const> weights,
            absl::Span<float* const> gradients) override;
  bool InPlace() const override { return false; }
  int64_t num_tokens() const override { return tokens_.total; }
  bool ShareGradient() override { return shared_ = true; }
  const float* Forward(const ForwardContext& context, int64_t rows,
                       const float* x, float* y) override;
  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override;

 private:
  const ClassRange tokens_;
  const int64_t dim_;
  const DeviceArray<int64_t> ids_;  // of the last forward pass
  bool shared_ = false;

  float* weight_ = nullptr;
  float* d_weight_ = nullptr;
};

// Adds a vector for each position. x, y: [positions, dim], weight:
// [length, dim], positions at most length.
class PositionEmbeddingLayer final : public Layer {
 public:
  PositionEmbeddingLayer(Ops* ops, Shape shape, int64_t length, int64_t dim)
      : Layer(ops, shape, shape), length_(length), dim_(dim) {}

  ParameterSpecs parameters() const override;
  void Bind(absl::Span<float* const> weights,
            absl::Span<float* const> gradients) override;
  const float* Forward(const ForwardContext& context, int64_t rows,
                       const float* x, float* y) override;
  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override;

 private:
  const int64_t length_;
  const int64_t dim_;

  float* weight_ = nullptr;
  float* d_weight_ = nullptr;
};

// y = x w^T with an embedding's weight: the head of a language model.
// x: [..., dim], y: [..., tokens].
class TiedLinearLayer final : public Layer {
 public:
  TiedLinearLayer(Ops* ops, Shape input_shape, Shape output_shape,
                  std::string to)
      : Layer(ops, std::move(input_shape), std::move(output_shape)),
        to_(std::move(to)) {}

  const std::string& tied_to() const override { return to_; }
  void BindTied(float* weight, float* gradient) override {
    weight_ = weight;
    d_weight_ = gradient;
  }
  bool ReadsInput() const override { return true; }
  bool InPlace() const override { return false; }
  const float* Forward(const ForwardContext& context, int64_t rows,
                       const float* x, float* y) override;
  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override;

 private:
  int64_t dim() const { return input_shape().back(); }
  int64_t tokens() const { return output_shape().back(); }

  const std::string to_;
  float* weight_ = nullptr;
  float* d_weight_ = nullptr;
};

}  // namespace tributary
