// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/parameter_memory.h"
#include "common/host/memory/shared_arena.h"
#include "common/wire/shared_buffer.h"

namespace tributary {

// The parameters of a program, in memory that its synchronizer needs. The
// synchronizer writes weights at any time of a step, into an array of their
// own. The program has a copy, which changes only in Publish: its backward pass
// may still read a weight whose gradient is final, and what the program writes
// into the copy can be found.
class ProgramParameters final : public ParameterMemory {
 public:
  enum class Gradients {
    kShared,  // in memory that servers on this machine can read
    kArray,   // one array, as a group of ranks exchanges it; of weights as well
  };
  // A large parameter is compared in one of kStride runs, other ones in each
  // step: every change of kStride consecutive runs is found at once, and a
  // smaller one within kStride steps if the program repeats it.
  static constexpr int64_t kRun = 64;  // elements
  static constexpr int64_t kStride = 16;
  static constexpr int64_t kSmall = kStride * 1024;  // compared as a whole

  // weights: the program's, of each parameter; they must outlive this object.
  // reserved: as in Session::Declaration. With kShared these are written where
  // they are.
  ProgramParameters(ParameterSpecs specs, std::vector<float*> weights,
                    const std::vector<int>& reserved, Gradients gradients);

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
  // empty: none. Running averages may change.
  std::string FirstChanged() const;
  // Whether the program's memory has every bit of the parameter's weights.
  bool IsUnchanged(int i) const;

  // Copies of the weights in the program's memory.
  std::vector<std::vector<float>> CopyOfPrograms() const;

 private:
  void ShareGradients();
  // Makes an array of the parameters whose place in `places` is null, and sets
  // these.
  void MakeArray(int stagger, std::vector<float*>* places);
  bool IsEqual(int i, int64_t begin, int64_t count) const;

  const ParameterSpecs specs_;
  const std::vector<float*> programs_;  // the program's weights
  std::shared_ptr<SharedArena> arena_;
  std::vector<SharedBuffer> buffers_;
  std::vector<float*> weights_, gradients_;
  int64_t steps_ = 0;  // at the last Publish
};

}  // namespace tributary
