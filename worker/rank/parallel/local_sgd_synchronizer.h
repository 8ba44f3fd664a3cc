// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/base/parameter_memory.h"
#include "common/plan/gradient_bucketer.h"
#include "kernels/ops.h"
#include "worker/rank/client/parameter_client.h"
#include "worker/rank/parallel/gradient_synchronizer.h"
#include "worker/rank/parallel/local_optimizer.h"

namespace tributary {

// Takes `period` steps with a local (inner) optimizer, then pushes the movement
// of the weights (start - now) as the gradient of one step of the servers'
// outer optimizer, weighted by the samples of the round, and continues from the
// weights in their answer (DiLoCo, Douillard et al. 2023; local SGD, Stich
// 2019). The inner optimizer's state stays on this worker; a replacement
// process starts with a new state.
class LocalSgdSynchronizer final : public GradientSynchronizer {
 public:
  struct Options {
    std::unique_ptr<ParameterClient> client;  // for a plan of the model
    ParameterMemory* model = nullptr;  // both must outlive the synchronizer
    Ops* ops = nullptr;
    int64_t period = 1;
    int64_t total_steps = 0;  // the last round may be shorter
    OptimizerOptions inner;   // not LAMB
    std::function<double(int64_t step)> learning_rate;
    std::vector<ParameterGroup> groups;  // of the inner optimizer
  };

  // ResourceExhausted: no memory for the inner optimizer's state.
  static absl::StatusOr<std::unique_ptr<LocalSgdSynchronizer>> Create(
      Options options);

  absl::StatusOr<int64_t> Start(const MakeWeights& initial,
                                const OnProgress& on_progress) override;
  void BeginStep(int64_t step, uint64_t samples) override;
  void GradientReady(int /*parameter*/) override {}
  absl::StatusOr<int64_t> FinishStep() override;
  void Cancel(const std::string& why) override { options_.client->Cancel(why); }
  Traffic traffic() const override;
  std::vector<Span> spans() const override { return spans_; }

 private:
  explicit LocalSgdSynchronizer(Options options);

  absl::Status Exchange();
  void CopyWeightsIn();

  const Options options_;
  std::unique_ptr<LocalOptimizer> optimizer_;
  GradientBucketer bucketer_;
  std::vector<std::vector<float>> start_;  // weights at the start of the round
  std::vector<std::vector<float>> movement_;  // start - now, while it is pushed
  int64_t inner_steps_ = 0;                   // since the state began
  int64_t step_ = 0;
  uint64_t samples_ = 0;        // of the step
  uint64_t round_samples_ = 0;  // of the round
  std::vector<Span> spans_;     // of the step
};

}  // namespace tributary
