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
// synchronizer may write weights at any time of a step, so they have an array
// of their own. The program has a copy, which changes only in Publish. So its
// backward pass may still read a weight whose gradient is final, and a change
// that the program makes to the copy is found.
class ProgramParameters final : public ParameterMemory {
 public:
  enum class Gradients {
    kShared,  // in memory that servers on this machine can read
    kArray,   // one array, as a group of ranks exchanges it; of weights as well
  };
  // FirstChanged compares one in kStride runs of a large parameter, and other
  // runs in the next step. It finds every change of kStride consecutive runs at
  // once, and a smaller one within kStride steps if the program repeats it.
  static constexpr int64_t kRun = 64;  // elements
  static constexpr int64_t kStride = 16;
  static constexpr int64_t kSmall = kStride * 1024;  // compared as a whole

  // weights: the program's, of each parameter; they must outlive this object.
  // reserved: as in Session::Declaration. With kShared the synchronizer writes
  // the weights of these parameters directly to the program's memory.
  ProgramParameters(ParameterSpecs specs, std::vector<float*> weights,
                    const std::vector<int>& reserved, Gradients gradients);

  const ParameterSpecs& parameters() const override { return specs_; }
  float* weight(int i) override { return weights_[i]; }
  float* gradient(int i) override { return gradients_[i]; }
  // Returns null when gradients cannot be shared.
  const std::shared_ptr<SharedArena>& gradient_memory() const { return arena_; }
  uint64_t gradient_moves() const { return arena_ ? arena_->moves() : 0; }

  // Copies the weights into the program's memory. steps: those that the rank
  // has finished. The program must not change the weights before the next call.
  void Publish(int64_t steps);
  // Returns the name of the first parameter that the program has changed since
  // Publish, or an empty text. Running averages may change.
  std::string FirstChanged() const;
  // True when the program's memory equals the parameter's weights in every bit.
  bool IsUnchanged(int i) const;

  // Copies of the weights in the program's memory.
  std::vector<std::vector<float>> CopyOfPrograms() const;

 private:
  void ShareGradients();
  // Makes one array for the parameters whose place in `places` is null, and
  // sets these places.
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
