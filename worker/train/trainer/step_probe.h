// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/ops.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "worker/rank/parallel/gradient_synchronizer.h"
#include "worker/train/model/model.h"

namespace tributary {

// Writes down what a rank computes in some steps, for `tributary replay`: a
// GradientSynchronizer that looks at each gradient before another one takes it,
// and at the weights after the step. It changes nothing.
//
// FOLDER/rank-R.jsonl gets a line for each step:
//   {"step": 12, "rank": 0, "samples": 64, "loss_sum": 21.5, "tensors": [
//     {"name": "0.weight", "gradient_norm": 0.25,
//      "gradient_crc32c": 17, "weight_crc32c": 42}, ...]}
// in the model's order. samples and loss_sum are null on a rank that does not
// report them. The gradient is that of the rank's own samples, or of its part
// of a tensor; its fields are null where the rank has no samples.
class StepProbe final : public GradientSynchronizer {
 public:
  struct Options {
    std::string folder;
    int64_t first_step = 0;  // from 1
    int64_t last_step = 0;
    int rank = 0;
    Ops* ops = nullptr;  // both outlive the probe
    Model* model = nullptr;
  };

  // Unavailable: the file cannot be created.
  static absl::StatusOr<std::unique_ptr<StepProbe>> Create(
      Options options, std::unique_ptr<GradientSynchronizer> synchronizer);

  // The report of the last finished step completes its line.
  void Report(const v1::StepReport& report);

  absl::StatusOr<int64_t> Start(const MakeWeights& initial,
                                const OnProgress& on_progress) override {
    return synchronizer_->Start(initial, on_progress);
  }
  void BeginStep(int64_t step, uint64_t samples) override;
  void GradientReady(int parameter) override;
  absl::StatusOr<int64_t> FinishStep() override;
  absl::Status Settle() override { return synchronizer_->Settle(); }
  absl::Status ShowNewest() override { return synchronizer_->ShowNewest(); }
  absl::Status HideNewest() override { return synchronizer_->HideNewest(); }
  absl::Status Checkpoint(int64_t step, bool best) override {
    return synchronizer_->Checkpoint(step, best);
  }
  absl::Status End(int64_t step) override { return synchronizer_->End(step); }
  void SetLearningRates(const std::vector<double>& rates) override {
    synchronizer_->SetLearningRates(rates);
  }
  bool skipped() const override { return synchronizer_->skipped(); }
  absl::Status WaitUntilPushed() override {
    return synchronizer_->WaitUntilPushed();
  }
  void Cancel(const std::string& why) override { synchronizer_->Cancel(why); }
  Traffic traffic() const override { return synchronizer_->traffic(); }
  std::vector<Span> spans() const override { return synchronizer_->spans(); }

 private:
  struct Tensor {
    double gradient_norm = 0;
    uint32_t gradient_crc = 0;
    uint32_t weight_crc = 0;
  };

  StepProbe(Options options,
            std::unique_ptr<GradientSynchronizer> synchronizer);

  // Copies the parameter's weight or gradient into host_.
  absl::Status CopyOut(const float* values, int parameter);

  const Options options_;
  const std::unique_ptr<GradientSynchronizer> synchronizer_;
  std::ofstream file_;
  bool active_ = false;       // the current step is written down
  bool has_samples_ = false;  // in the current step
  absl::Status status_;       // the first error of the device
  std::vector<float> host_;   // of one parameter
  std::vector<Tensor> tensors_;
};

}  // namespace tributary
