#pragma once

#include <memory>
#include <vector>

#include "common/plan/gradient_bucketer.h"
#include "kernels/ops.h"
#include "worker/client/parameter_client.h"
#include "worker/model/model.h"
#include "worker/parallel/gradient_synchronizer.h"

namespace tributary {

// Pushes each block as soon as its gradients are there and takes the block's
// new weights as they come, while backward goes on below. On a host device the
// network reads gradients and writes weights where the model keeps them; else
// both pass through host copies, and a fault of the device stops every push
// that would follow it.
class ParameterServerSynchronizer final : public GradientSynchronizer {
 public:
  // How the servers apply contributions (docs/consistency.md).
  enum class Mode {
    kBulk,      // every worker's, together: nobody is ever left behind
    kBackup,    // the first ones, together: a late worker jumps ahead
    kSeparate,  // each by itself
  };

  // `model` and `ops` outlive it. place_in_plan: of each of the model's
  // parameters, among the client's.
  ParameterServerSynchronizer(std::unique_ptr<ParameterClient> client,
                              Model* model, Ops* ops, Mode mode,
                              std::vector<int> place_in_plan);

  absl::StatusOr<int64_t> Start(const MakeWeights& initial,
                                const OnPosition& on_position) override;
  void BeginStep(int64_t step, uint64_t samples) override;
  void GradientReady(int parameter) override;
  absl::StatusOr<int64_t> FinishStep() override;
  absl::Status WaitUntilPushed() override;
  void Cancel(const std::string& why) override { client_->Cancel(why); }
  Traffic traffic() const override;
  std::vector<Span> spans() const override;

 private:
  // Reads the weights from which a worker that has finished `steps` goes on.
  absl::Status PullStart(int64_t steps);
  void CopyWeightsIn();

  const std::unique_ptr<ParameterClient> client_;
  Model* const model_;
  Ops* const ops_;
  const Mode mode_;
  GradientBucketer bucketer_;
  const std::vector<int> place_in_plan_;
  // Host memory of each planned parameter that the model has: the model's own,
  // or the copies below.
  std::vector<float*> weights_;
  std::vector<float*> gradients_;
  std::vector<std::vector<float>> copies_;
  int64_t step_ = 0;
  uint64_t samples_ = 0;
  absl::Status fault_;  // the first of the device: nothing is pushed after it
};

}  // namespace tributary
