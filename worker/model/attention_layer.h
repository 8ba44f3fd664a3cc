#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"

#include "worker/model/device_array.h"
#include "worker/model/layer.h"
#include "worker/model/scratch.h"

namespace tributary {

// Multi-head self-attention as torch.nn.MultiheadAttention with its input as
// query, key and value. x, y: [time, dim]. in_proj_weight: [3 dim, dim] and
// in_proj_bias: [3 dim] (or none) make q, k and v; out_proj.weight: [dim, dim],
// out_proj.bias: [dim].
class AttentionLayer final : public Layer {
 public:
  struct Options {
    int64_t heads = 1;
    bool causal = false;
    bool qkv_bias = true;
  };

  // shape: [time, dim]. ResourceExhausted when the device has no room.
  static absl::StatusOr<std::unique_ptr<Layer>> Create(Ops* ops, Shape shape,
                                                       const Options& options,
                                                       int64_t max_rows,
                                                       Scratch* scratch);

  ParameterSpecs parameters() const override;
  void Bind(absl::Span<float* const> weights,
            absl::Span<float* const> gradients) override;
  bool ReadsInput() const override { return true; }
  bool InPlace() const override { return false; }
  const float* Forward(const ForwardContext& context, int64_t rows,
                       const float* x, float* y) override;
  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override;

 private:
  AttentionLayer(Ops* ops, Shape shape, const Options& options)
      : Layer(ops, shape, shape),
        time_(shape[0]),
        dim_(shape[1]),
        options_(options) {}

  AttentionShape ShapeFor(int64_t rows) const;

  const int64_t time_;
  const int64_t dim_;
  const Options options_;
  const Scratch* scratch_ = nullptr;

  DeviceArray<float> qkv_;      // [rows, time, 3 dim], of the last forward
  DeviceArray<float> context_;  // [rows, time, dim]
  DeviceArray<float> log_sum_;  // [rows, heads, time]

  float* in_weight_ = nullptr;
  float* in_bias_ = nullptr;
  float* out_weight_ = nullptr;
  float* out_bias_ = nullptr;
  float* d_in_weight_ = nullptr;
  float* d_in_bias_ = nullptr;
  float* d_out_weight_ = nullptr;
  float* d_out_bias_ = nullptr;
};

}  // namespace tributary
