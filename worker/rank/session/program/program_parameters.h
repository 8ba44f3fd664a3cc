// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/parameter_memory.h"
#include "common/host/memory/shared_arena.h"
#include "common/wire/shared_buffer.h"
#include "worker/rank/session/program/weight_seal.h"

namespace tributary {

// The parameters of a program, in the memory that its synchronizer needs.
class ProgramParameters final : public ParameterMemory {
 public:
  enum class Memory {
    // The weights are the program's own. The gradients lie in memory that
    // servers on this machine can read.
    kForServers,
    // Gradients and weights lie in an array each, as a group of ranks exchanges
    // them. The program has copies of the weights, which change only in
    // Publish: its backward pass may still read a weight whose gradient is
    // final.
    kForGroups,
  };

  // weights: the program's, of each parameter; they must outlive this object.
  ProgramParameters(ParameterSpecs specs, std::vector<float*> weights,
                    Memory memory);

  const ParameterSpecs& parameters() const override { return specs_; }
  float* weight(int i) override { return weights_[i]; }
  float* gradient(int i) override { return gradients_[i]; }
  // Null: gradients cannot be shared.
  const std::shared_ptr<SharedArena>& gradient_memory() const { return arena_; }
  uint64_t gradient_moves() const { return arena_ ? arena_->moves() : 0; }

  // Copies the weights into the program's memory. steps: those that the rank
  // has finished. The program must not change the weights before the next call.
  void Publish(int64_t steps);
  // The name of the first parameter that the program has written into since;
  // empty: none.
  std::string FirstChanged() const;

  // Copies of the weights in the program's memory.
  std::vector<std::vector<float>> CopyOfPrograms() const;

 private:
  void ShareGradients();
  void MakeArrays();

  const ParameterSpecs specs_;
  const std::vector<float*> programs_;  // the program's weights
  std::shared_ptr<SharedArena> arena_;
  std::vector<SharedBuffer> buffers_;
  std::vector<float*> weights_, gradients_;
  WeightSeal seal_;
};

}  // namespace tributary
