// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/unit/worker/train/model/model_fixture.h"
#include "worker/rank/collective/communicator.h"
#include "worker/train/model/loss.h"
#include "worker/train/model/tensor_group.h"

namespace tributary::testing {

// The objects of one rank of a tensor-parallel group.
struct TensorRank {
  std::unique_ptr<Ops> ops;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<TensorGroup> group;
  std::unique_ptr<Model> model;
  std::unique_ptr<Loss> loss;
};

// One model on the CPU over several ranks, each a thread's while it computes.
// Weights and gradients are set and read whole.
class TensorRanks {
 public:
  struct Setup {
    std::string layers;
    Shape sample_shape;
    int64_t max_rows = 1;
    int ranks = 2;
    std::string loss = "cross_entropy {}";
    uint64_t seed = 1;
    int64_t small_elements = 64;
    absl::Duration timeout = absl::Seconds(20);
    int first_layer = 0;  // of a stage
    int end_layer = 0;
  };

  explicit TensorRanks(const Setup& setup);

  int size() const { return static_cast<int>(ranks_.size()); }
  TensorRank& operator[](int r) { return ranks_[r]; }
  const Model& model() const { return *ranks_[0].model; }
  int num_parameters() const {
    return static_cast<int>(model().parameters().size());
  }
  // The parameters that the ranks hold together.
  const ParameterSpecs& whole_parameters() const { return whole_; }
  int64_t Size(int p) const { return whole_[p].size(); }

  // Runs `body` for each rank on a thread of its own.
  void Run(const std::function<void(int r, TensorRank& rank)>& body);

  void SetWeight(int p, const Floats& whole);
  Floats Weight(int p);
  Floats Gradient(int p);

  // The logits of all classes; those that are not cut are the same everywhere.
  Floats Forward(const Floats& features, int64_t rows,
                 const ForwardContext& context = {});

  struct Step {
    Floats logits;
    double loss = 0;  // summed
  };
  Step Train(const Floats& features, const LossTargets& targets, int64_t rows,
             double scale, const ForwardContext& context = {},
             bool accumulate = false);

  void Backward(const Floats& dy, bool accumulate);

 private:
  Floats Assemble(int p, const std::function<float*(Model&)>& array);
  Floats Join(const std::vector<Floats>& outputs);

  std::vector<TensorRank> ranks_;
  ParameterSpecs whole_;
};

}  // namespace tributary::testing
