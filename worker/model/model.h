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
  const ParameterSpecs& parameters() const { return parameters_; }
  const Shape& output_shape() const { return layers_.back()->output_shape(); }
  int64_t output_size() const { return layers_.back()->output_size(); }
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
  // Where a layer writes: indices of buffers, -1 for none.
  struct Place {
    int output = -1;
    int input_gradient = -1;
  };

  Model(Ops* ops, int64_t max_rows) : ops_(ops), max_rows_(max_rows) {}

  absl::Status AddLayers(const v1::ModelSpec& spec, const Shape& sample_shape,
                         uint64_t seed);
  absl::Status PlaceParameters();
  absl::Status PlaceActivations();
  absl::Status PlaceInputGradients();
  absl::StatusOr<int> AddBuffer(int64_t elements_per_row);
  float* BufferAt(int place);

  Ops* const ops_;
  const int64_t max_rows_;

  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<int> first_parameter_;  // of each layer
  int first_trained_layer_ = 0;       // nothing below it has a gradient
  ParameterSpecs parameters_;

  std::vector<int64_t> offsets_;  // of each parameter, in elements
  DeviceArray<float> weights_;
  DeviceArray<float> gradients_;

  std::vector<Place> places_;  // of each layer
  std::vector<DeviceArray<float>> buffers_;
  DeviceArray<float> features_;  // where the device cannot read the host

  // Of the last Forward.
  int64_t rows_ = 0;
  std::vector<const float*> activations_;  // input of each layer, then logits
};

}  // namespace tributary
