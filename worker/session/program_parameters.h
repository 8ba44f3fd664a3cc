// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/parameter_memory.h"
#include "common/host/shared_arena.h"
#include "common/wire/shared_buffer.h"
#include "worker/session/weight_seal.h"

namespace tributary {

// The parameters of a program: its own weights, and memory for their gradients
// that servers on this machine can read.
class ProgramParameters final : public ParameterMemory {
 public:
  // weights: of each parameter; they must outlive this object.
  ProgramParameters(ParameterSpecs specs, std::vector<float*> weights)
      : specs_(std::move(specs)), weights_(std::move(weights)) {
    size_t bytes = 1;
    for (const ParameterSpec& spec : specs_) {
      bytes += SharedArena::Taken(spec.size() * sizeof(float));
    }
    if (auto arena = SharedArena::Create(bytes); arena.ok()) arena_ = *arena;
    for (const ParameterSpec& spec : specs_) {
      gradients_.emplace_back(spec.size(), /*stagger=*/0, arena_);
    }
  }

  const ParameterSpecs& parameters() const override { return specs_; }
  float* weight(int i) override { return weights_[i]; }
  float* gradient(int i) override { return gradients_[i].data(); }
  // Null: gradients cannot be shared.
  const std::shared_ptr<SharedArena>& gradient_memory() const { return arena_; }

  uint64_t gradient_moves() const { return arena_ ? arena_->moves() : 0; }

  // From now on the program must not change the weights; `step`: the next step.
  void Seal(int64_t step) { seal_.Close(specs_, weights_, step); }
  // The name of the first parameter that the program has written into since;
  // empty: none.
  std::string FirstChanged() const {
    const int changed = seal_.FirstChanged(specs_, weights_);
    return changed < 0 ? "" : specs_[changed].name;
  }

  std::vector<std::vector<float>> CopyWeights() const {
    std::vector<std::vector<float>> copies;
    for (size_t i = 0; i < specs_.size(); ++i) {
      copies.emplace_back(weights_[i], weights_[i] + specs_[i].size());
    }
    return copies;
  }

 private:
  const ParameterSpecs specs_;
  const std::vector<float*> weights_;
  std::shared_ptr<SharedArena> arena_;
  std::vector<SharedBuffer> gradients_;
  WeightSeal seal_;
};

}  // namespace tributary
