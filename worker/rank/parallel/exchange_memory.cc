// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/parallel/exchange_memory.h"

#include <utility>

#include "common/status/status_macros.h"

namespace tributary {

absl::StatusOr<std::unique_ptr<ExchangeMemory>> ExchangeMemory::Create(
    ParameterMemory* model, Ops* ops) {
  std::unique_ptr<ExchangeMemory> made(new ExchangeMemory(model, ops));
  const ParameterSpecs& parameters = model->parameters();
  size_t bytes = 1;  // a stage may have no parameters
  for (const ParameterSpec& parameter : parameters) {
    bytes += SharedArena::Taken(parameter.size() * sizeof(float));
  }
  if (ops->is_host()) {
    auto arena = SharedArena::Create(bytes);
    if (arena.ok()) made->arena_ = *std::move(arena);
  }
  for (const ParameterSpec& parameter : parameters) {
    for (auto* arrays : {&made->weights_, &made->aside_, &made->gradients_}) {
      DeviceArray<float> array;
      if (made->arena_ != nullptr && arrays == &made->gradients_) {
        array = DeviceArray<float>::AllocateIn(made->arena_, parameter.size());
      }
      if (array.data() == nullptr) {
        TRIBUTARY_ASSIGN_OR_RETURN(
            array, DeviceArray<float>::Allocate(ops, parameter.size()));
      }
      arrays->push_back(std::move(array));
    }
  }
  return made;
}

void ExchangeMemory::Copy(int parameter, const float* from, float* to) {
  const int64_t size = parameters()[parameter].size();
  ops_.CopyMatrix(/*rows=*/1, size, from, size, to, size);
}

float* ExchangeMemory::WeightAt(Place place, int parameter) {
  switch (place) {
    case Place::kModel:
      return model_.weight(parameter);
    case Place::kExchange:
      return weight(parameter);
    case Place::kAside:
      break;
  }
  return aside_[parameter].data();
}

void ExchangeMemory::CopyWeights(Place from, Place to) {
  for (int p = 0; p < std::ssize(weights_); ++p) {
    Copy(p, WeightAt(from, p), WeightAt(to, p));
  }
}

void ExchangeMemory::TakeGradients() {
  for (int p = 0; p < std::ssize(gradients_); ++p) {
    Copy(p, model_.gradient(p), gradient(p));
  }
}

}  // namespace tributary
