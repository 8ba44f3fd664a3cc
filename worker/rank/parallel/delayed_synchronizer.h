// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/ops.h"
#include "worker/rank/parallel/exchange_memory.h"
#include "worker/rank/parallel/gradient_synchronizer.h"
#include "worker/rank/parallel/parameter_server_synchronizer.h"

namespace tributary {

// Exchanges the gradient of a step while the next step is computed, so the
// gradient of step s is computed at the weights after step s - 2 instead of
// s - 1 (a pipeline of depth two: Pipe-SGD, Li et al., NeurIPS 2018). The
// weights of the first step serve the second one as well. The result does not
// depend on timing: servers apply each step as without a delay.
//
// FinishStep takes the weights from the exchange of the previous step, and
// begins the exchange of its own step. Until the next FinishStep the model has
// the weights before the finished step, except between ShowNewest and
// HideNewest and after End.
class DelayedSynchronizer final : public GradientSynchronizer {
 public:
  struct Options {
    std::unique_ptr<ExchangeMemory> memory;
    // Exchanges with the servers for `memory`.
    std::unique_ptr<ParameterServerSynchronizer> exchange;
    Ops* ops = nullptr;  // of the model's device; must outlive it
  };
  explicit DelayedSynchronizer(Options options);
  ~DelayedSynchronizer() override;

  absl::StatusOr<int64_t> Start(const MakeWeights& initial,
                                const OnProgress& on_progress) override;
  void BeginStep(int64_t step, uint64_t samples) override;
  void GradientReady(int /*parameter*/) override {}
  absl::StatusOr<int64_t> FinishStep() override;
  absl::Status Settle() override;
  absl::Status ShowNewest() override;
  absl::Status HideNewest() override;
  absl::Status Checkpoint(int64_t step, bool best) override;
  absl::Status End(int64_t step) override;
  void SetLearningRates(const std::vector<double>& rates) override {
    exchange_->SetLearningRates(rates);
  }
  absl::Status WaitUntilPushed() override {
    return exchanging_ ? exchange_->WaitUntilPushed() : absl::OkStatus();
  }
  void Cancel(const std::string& why) override { exchange_->Cancel(why); }
  Traffic traffic() const override { return exchange_->traffic(); }
  // The spans of the exchange that ended in the last finished step.
  std::vector<Span> spans() const override { return spans_; }

 private:
  const std::unique_ptr<ExchangeMemory> memory_;
  Ops* const ops_;
  const std::unique_ptr<ParameterServerSynchronizer> exchange_;
  int64_t step_ = 0;
  uint64_t samples_ = 0;
  bool exchanging_ = false;  // the last finished step's exchange has not ended
  absl::Status failed_;      // of the first failed exchange; ends all work
  std::vector<Span> spans_;
};

}  // namespace tributary
