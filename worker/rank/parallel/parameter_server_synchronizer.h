// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/parameter_memory.h"
#include "common/host/memory/shared_arena.h"
#include "common/plan/gradient_bucketer.h"
#include "common/wire/shared_buffer.h"
#include "kernels/device.h"
#include "kernels/ops.h"
#include "worker/rank/client/parameter_client.h"
#include "worker/rank/parallel/device/copy_thread.h"
#include "worker/rank/parallel/device/exchange_device.h"
#include "worker/rank/parallel/device/gradient_copier.h"
#include "worker/rank/parallel/gradient_synchronizer.h"
#include "worker/rank/parallel/residual_checkpoints.h"

namespace tributary {

// Pushes each block as soon as its gradients are computed, and receives the
// block's new weights, while the backward pass continues. If the device is the
// host, the network reads gradients and writes weights directly in the model's
// memory. Otherwise both go through host copies: one thread copies gradients,
// and another one copies weights to the device as they arrive. A fault of the
// device stops all later pushes.
//
// New weights may replace the old ones during the backward pass, because a
// block leaves only when the device has computed the gradients of all its
// parameters, and nothing reads weights whose gradient is final.
class ParameterServerSynchronizer final : public GradientSynchronizer {
 public:
  struct Options {
    std::unique_ptr<ParameterClient> client;
    ParameterMemory* model = nullptr;  // must outlive the synchronizer
    ExchangeDevice device;             // as DeviceBeside
    // Another Ops of the device, which copies weights to it; null on the host.
    std::unique_ptr<Ops> weights_ops;
    ApplyMode mode = ApplyMode::kBulk;
    // For each of the model's parameters, its index among the client's.
    std::vector<int> place_in_plan;
    // The client's memory for copies of a device's gradients; or null.
    std::shared_ptr<SharedArena> gradient_memory;
    // Writes the client's residuals to checkpoints; null: they are not written.
    std::unique_ptr<ResidualCheckpoints> residuals;
  };
  // ResourceExhausted: the device has no room.
  static absl::StatusOr<std::unique_ptr<ParameterServerSynchronizer>> Create(
      Options options);
  ~ParameterServerSynchronizer() override;

  absl::StatusOr<int64_t> Start(const MakeWeights& initial,
                                const OnProgress& on_progress) override;
  // Loads the weights after exactly `version` updates, which the servers must
  // still keep. Call it between steps.
  absl::Status LoadVersion(int64_t version);
  void BeginStep(int64_t step, uint64_t samples) override;
  void GradientReady(int parameter) override;
  absl::StatusOr<int64_t> FinishStep() override;
  absl::Status Checkpoint(int64_t step, bool best) override;
  absl::Status End(int64_t step) override;
  void SetLearningRates(const std::vector<double>& rates) override {
    learning_rates_ = rates;
  }
  bool skipped() const override { return client_->skipped(); }
  absl::Status WaitUntilPushed() override;
  void Cancel(const std::string& why) override { client_->Cancel(why); }
  Traffic traffic() const override;
  std::vector<Span> spans() const override;

 private:
  explicit ParameterServerSynchronizer(Options* options);
  void MakeCopies();
  // Pins a copy that has pages of its own. Without a pin, `why_not` may say
  // why.
  std::unique_ptr<PinnedMemory> Pin(SharedBuffer& copy, int64_t size,
                                    std::string* why_not);
  // Elements begin to end - 1 of this planned parameter's gradient are in
  // gradients_: pushes the blocks that are now complete.
  void Push(int place, int64_t begin, int64_t end);
  // Copies the weights of a block's slices to the device, on loads_'s thread.
  absl::Status Load(const std::vector<Slice>& slices);
  absl::Status LoadAll();

  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<ResidualCheckpoints> residuals_;      // may be null
  const std::shared_ptr<SharedArena> gradient_memory_;  // may be null
  ParameterMemory* const model_;
  Ops* const ops_;
  const ApplyMode mode_;
  GradientBucketer bucketer_;
  const std::vector<int> place_in_plan_;
  std::vector<int> index_of_;  // [planned parameter], the model's; -1: none
  // Host memory of each planned parameter that the model has: the model's
  // memory or copies_.
  std::vector<float*> weights_;
  std::vector<float*> gradients_;
  std::vector<SharedBuffer> copies_;
  std::vector<std::unique_ptr<PinnedMemory>> weight_pins_;  // of copies_
  // Pins of gradients in copies_. There are none after gradient_memory_ has
  // been detached: a step has failed then, and no gradient is copied any more.
  std::vector<std::unique_ptr<PinnedMemory>> gradient_pins_;
  int64_t step_ = 0;
  uint64_t samples_ = 0;
  std::vector<double> learning_rates_;  // of the next steps; empty: scheduled
  absl::Status fault_;  // the device's first fault; ends all pushes
  std::unique_ptr<GradientCopier> copier_;  // calls Push; null on the host
  const std::unique_ptr<Ops> weights_ops_;  // these two are null on the host
  std::unique_ptr<CopyThread> loads_;
};

}  // namespace tributary
