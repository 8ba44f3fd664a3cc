// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/parameter_memory.h"
#include "common/base/parameter_slice.h"
#include "common/base/parameter_spec.h"
#include "common/base/tensor.h"
#include "common/host/memory/shared_arena.h"
#include "common/layers/tensor_cuts.h"
#include "kernels/ops.h"
#include "tributary/v1/job.pb.h"
#include "worker/rank/collective/device_array.h"
#include "worker/train/model/layer.h"
#include "worker/train/model/layer_stack.h"
#include "worker/train/model/scratch.h"
#include "worker/train/model/tensor_group.h"

namespace tributary {

// A sequential model on one device. Its backward pass hands out each gradient
// as soon as it is computed. All memory is allocated at the start, for batches
// of up to max_rows samples. For one thread.
//
// It may be one stage of a pipeline: a range of the layers, with the
// activations of several batches at a time. Names, initial weights and dropout
// are those of the whole model.
class Model final : public ParameterMemory {
 public:
  struct Options {
    Ops* ops = nullptr;    // must outlive the model
    int64_t max_rows = 0;  // per batch
    uint64_t seed = 0;     // for dropout
    // Set when the model is split by TensorCuts and each rank of the group has
    // one part; must outlive the model. All ranks get the same features.
    // cut_logits: the loss takes logits that are split by class
    // (Loss::Options::cut).
    TensorGroup* group = nullptr;
    bool cut_logits = false;
    // The range of the spec's layers; end_layer 0: to the last layer.
    int first_layer = 0;
    int end_layer = 0;
    // Batches that may be between Forward and Backward at a time.
    int activation_sets = 1;
    // Keeps the gradients of a host device in gradient_memory.
    bool share_gradients = false;
  };

  // InvalidArgument names the layer that does not fit, what it wants and what
  // it gets. ResourceExhausted when the device has not enough memory.
  static absl::StatusOr<std::unique_ptr<Model>> Create(
      const v1::ModelSpec& spec, const Shape& sample_shape,
      const Options& options);

  // In forward order, named as in torch.nn.Sequential: "0.weight". With a group
  // they are this rank's slices of the whole parameters; a parameter that is
  // not split has the same gradient, bit for bit, on every rank. A stage lists
  // first its copies of parameters that it shares with an earlier stage; their
  // gradients are this stage's part.
  const ParameterSpecs& parameters() const override { return parameters_; }
  const std::vector<ParameterSlice>& slices() const { return slices_; }
  // How many of the first parameters are copies of an earlier stage's.
  int copies() const { return copies_; }
  // The outputs that Forward returns: all, unless cut_logits is set.
  const OutputCut& output_cut() const { return output_cut_; }
  // The shapes and sizes of one sample.
  int64_t input_size() const { return front().input_size(); }
  const Shape& output_shape() const { return stacks_[0]->output_shape(); }
  int64_t output_size() const { return NumElements(output_shape()); }
  // The number of tokens that the model knows; 0 when its input is not token
  // ids.
  int64_t num_tokens() const { return front().num_tokens(); }
  int64_t max_rows() const { return max_rows_; }
  int activation_sets() const { return static_cast<int>(stacks_.size()); }

  // Device memory of parameter i and of its gradient, initially zero. Weights
  // are in one allocation in forward order, and so are gradients; every
  // parameter starts at a multiple of 64 bytes.
  float* weight(int i) override { return weights_.data() + offsets_[i]; }
  float* gradient(int i) override { return gradients_.data() + offsets_[i]; }
  // The shared memory that all gradients are in, for ParameterClient::Options;
  // null: the gradients are not in shared memory.
  const std::shared_ptr<SharedArena>& gradient_memory() const {
    return gradient_memory_;
  }

  // features: [rows, sample] in host memory, or in a later stage [rows, input]
  // on the device. They must not change until Backward is done. rows is at most
  // max_rows. Returns the logits, [rows, output], on the device, valid until
  // the next Forward of this activation set.
  const float* Forward(const float* features, int64_t rows,
                       const ForwardContext& context, int set = 0);

  // Runs backward through the last Forward of this set. d_logits: the loss's
  // gradient, [rows, output] on the device. Overwrites the gradients of all
  // parameters, or adds to them with `accumulate`. Calls gradient_ready(i), if
  // set, once parameter i's gradient is enqueued, from the last parameter to
  // the first. From then on weight(i) is not read any more, so any thread may
  // write new weights there (on a device in stream order). A later stage
  // returns the gradient of the input, valid until the next Backward and as
  // long as d_logits.
  const float* Backward(
      const float* d_logits, bool accumulate,
      const std::function<void(int parameter)>& gradient_ready, int set = 0);

  // The first error of the group; OK without a group. After an error no
  // gradient is handed out and outputs are invalid.
  absl::Status status() const {
    return group_ == nullptr ? absl::OkStatus() : group_->status();
  }

 private:
  Model(const v1::ModelSpec& spec, const Options& options);

  absl::Status CreateLayers(const v1::ModelSpec& spec,
                            const Shape& sample_shape, const Options& options);
  void ListParameters(const ParameterSpecs& all);
  void CutParameters(const ParameterSpecs& all, const TensorCuts& cuts);
  int FindParameter(const std::string& name) const;  // or -1
  absl::Status PlaceParameters();
  absl::Status AllocateGradients(int64_t size);
  absl::Status Tie(LayerStack& stack);
  const Layer& front() const { return *stacks_[0]->layers().front(); }

  Ops* const ops_;
  const int64_t max_rows_;
  const int first_layer_;
  const int end_layer_;
  TensorGroup* const group_;
  const bool share_gradients_;

  Scratch scratch_;
  std::vector<std::unique_ptr<LayerStack>> stacks_;  // one per activation set
  std::vector<ParameterSlice> slices_;
  OutputCut output_cut_;

  ParameterSpecs parameters_;
  int copies_ = 0;                // parameters of earlier stages
  std::vector<int64_t> offsets_;  // of each parameter, in elements
  DeviceArray<float> weights_;
  std::shared_ptr<SharedArena> gradient_memory_;
  DeviceArray<float> gradients_;
  DeviceArray<float> features_;  // unless the device reads host memory
};

}  // namespace tributary
