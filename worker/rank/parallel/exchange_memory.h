// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/parameter_memory.h"
#include "common/host/memory/shared_arena.h"
#include "kernels/ops.h"
#include "worker/rank/collective/device_array.h"

namespace tributary {

// Second arrays for the parameters of a model, on the model's device. Gradients
// and weights travel in them while the model computes with its own arrays.
class ExchangeMemory final : public ParameterMemory {
 public:
  // ResourceExhausted: the device has no room. model and ops must outlive it.
  static absl::StatusOr<std::unique_ptr<ExchangeMemory>> Create(
      ParameterMemory* model, Ops* ops);

  const ParameterSpecs& parameters() const override {
    return model_.parameters();
  }
  float* weight(int i) override { return weights_[i].data(); }
  float* gradient(int i) override { return gradients_[i].data(); }
  // The memory with the gradients, if servers on this machine can read it; null
  // when the model is on a device or the kernel provides none.
  const std::shared_ptr<SharedArena>& gradient_memory() const { return arena_; }

  // Where weights lie: in the model's arrays, in this object's second arrays,
  // or in its third ones, which keep weights for later.
  enum class Place { kModel, kExchange, kAside };
  // Copies all weights, on the device.
  void CopyWeights(Place from, Place to);
  // Copies the model's gradients into these arrays.
  void TakeGradients();

 private:
  ExchangeMemory(ParameterMemory* model, Ops* ops)
      : model_(*model), ops_(*ops) {}
  float* WeightAt(Place place, int parameter);
  void Copy(int parameter, const float* from, float* to);

  ParameterMemory& model_;
  Ops& ops_;
  std::shared_ptr<SharedArena> arena_;
  std::vector<DeviceArray<float>> weights_, gradients_, aside_;  // [parameter]
};

}  // namespace tributary
