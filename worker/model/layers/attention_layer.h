#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"

#include "worker/model/device_array.h"
#include "worker/model/layer.h"
#include "worker/model/scratch.h"

namespace tributary {

// Multi-head self-attention as torch.nn.MultiheadAttention with its input as
// query, key and value. x, y: [time, dim]. in_proj_weight: [3 width, dim] and
// in_proj_bias: [3 width] (or none) make q, k and v; out_proj.weight: [dim,
// width], out_proj.bias: [dim] (or none). The heads' width together is dim,
// but in a rank that has only some of them.
class AttentionLayer final : public Layer {
 public:
  struct Options {
    int64_t heads = 1;
    int64_t head_dim = 1;
    bool causal = false;
    bool qkv_bias = true;
    bool out_bias = true;
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
        width_(options.heads * options.head_dim),
        options_(options) {}

  AttentionShape ShapeFor(int64_t rows) const;

  const int64_t time_;
  const int64_t dim_;
  const int64_t width_;  // of all heads
  const Options options_;
  const Scratch* scratch_ = nullptr;

  DeviceArray<float> qkv_;      // [rows, time, 3 width], of the last forward
  DeviceArray<float> context_;  // [rows, time, width]
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
