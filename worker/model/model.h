#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/parameter_spec.h"
#include "common/tensor.h"
#include "kernels/ops.h"
#include "tributary/v1/job.pb.h"
#include "worker/model/device_array.h"
#include "worker/model/layer.h"
#include "worker/model/layer_stack.h"
#include "worker/model/scratch.h"

namespace tributary {

// A sequential model on one device: forward, and backward that hands out each
// gradient as soon as it is there. All memory is taken at the start, for
// batches of up to max_rows samples. For one thread.
class Model {
 public:
  struct Options {
    Ops* ops = nullptr;    // outlives the model
    int64_t max_rows = 0;  // of one batch
    uint64_t seed = 0;     // of dropout
  };

  // InvalidArgument names the layer that does not fit, what it wants and what
  // it gets; ResourceExhausted when the device has no room.
  static absl::StatusOr<std::unique_ptr<Model>> Create(
      const v1::ModelSpec& spec, const Shape& sample_shape,
      const Options& options);

  // In forward order, named as torch.nn.Sequential names them: "0.weight".
  const ParameterSpecs& parameters() const { return stack_->parameters(); }
  const Shape& output_shape() const { return stack_->output_shape(); }
  int64_t output_size() const { return NumElements(output_shape()); }
  // How many tokens the model takes; 0 when its input are no token ids.
  int64_t num_tokens() const { return stack_->layers().front()->num_tokens(); }
  int64_t max_rows() const { return max_rows_; }

  // Device memory of parameter i and of its gradient, at first all zero. Each
  // kind lies in one allocation in forward order, every parameter at a
  // multiple of 64 bytes.
  float* weight(int i) { return weights_.data() + offsets_[i]; }
  float* gradient(int i) { return gradients_.data() + offsets_[i]; }

  // features: [rows, sample] in host memory, unchanged until Backward is done;
  // rows at most max_rows. Returns the logits, [rows, output], on the device,
  // valid until the next Forward.
  const float* Forward(const float* features, int64_t rows,
                       const ForwardContext& context);

  // Back through the last Forward. d_logits: [rows, output] on the device, the
  // loss's gradient; the gradients of all parameters are overwritten, or added
  // to with `accumulate`. Calls gradient_ready(i), if set, once parameter i's
  // gradient is enqueued, from the last parameter to the first: from then on
  // nothing reads weight(i) any more, so that new weights may be written there
  // at any time, by any thread (on a device: in stream order).
  void Backward(const float* d_logits, bool accumulate,
                const std::function<void(int parameter)>& gradient_ready);

 private:
  Model(Ops* ops, int64_t max_rows) : ops_(ops), max_rows_(max_rows) {}

  absl::Status PlaceParameters();
  absl::Status Tie();

  Ops* const ops_;
  const int64_t max_rows_;

  Scratch scratch_;
  std::unique_ptr<LayerStack> stack_;
  int64_t sample_size_ = 0;

  std::vector<int64_t> offsets_;  // of each parameter, in elements
  DeviceArray<float> weights_;
  DeviceArray<float> gradients_;
  DeviceArray<float> features_;  // where the device cannot read the host
};

}  // namespace tributary
