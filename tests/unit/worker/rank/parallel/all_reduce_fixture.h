// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "tests/testing/nccl/device_like_ops.h"
#include "tests/testing/temporary_folder.h"
#include "worker/rank/collective/communicator.h"
#include "worker/rank/parallel/all_reduce_synchronizer.h"
#include "worker/train/model/model.h"

namespace tributary {

using Tensors = std::vector<std::vector<float>>;
using UpdateOn = AllReduceOptions::UpdateOn;

inline constexpr UpdateOn kEverywhere[] = {
    UpdateOn::kEveryRank, UpdateOn::kOwnCut, UpdateOn::kRankZero};

inline constexpr int kSteps = 4;

struct Case {
  const char* name;
  OptimizerOptions optimizer;
  double clip_norm = 0;
  std::vector<ParameterGroup> groups = {};
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

// A small model that is trained by ranks as threads, and by a parameter server
// with the same gradients.
class AllReduceSynchronizerTest : public testing::TemporaryFolderTest,
                                  public ::testing::WithParamInterface<Case> {
 public:
  // How a rank's exchange overlaps with its computation.
  struct Overlap {
    std::atomic<int> waits = 0;  // for a bucket of the device
    std::atomic<bool> loaded =
        false;  // the first step's gradients are computed
  };

 protected:
  // Trains; returns each rank's tensors at the end. `poison` puts a NaN into
  // step 2 of rank 1, which has no samples in step 3.
  std::vector<Tensors> Run(int size, UpdateOn on, bool poison = false,
                           bool skip = false);

  // Gives the same contributions to one server; with `skip`, none in step 2.
  Tensors OnAServer(int size, bool skip = false);

  // Does as the coordinator does once every file of step 2 is there.
  void WriteManifestOfStep2();

  static void ExpectSameBits(const Tensors& a, const Tensors& b);

  std::vector<absl::Status> statuses_;
  std::string directory_;  // of checkpoints, after every second step
  bool corrupt_ = false;   // a weight of rank 1, after step 1
  bool on_device_ = false;
  // The ranks are programs, which do not know each other's samples, and rank 1
  // finishes its gradients in another order.
  bool as_programs_ = false;
  // In this step `fails_` makes rank 1's device fail: it gets the Ops that
  // computes the gradients, and the one that exchanges them.
  int64_t fails_in_step_ = -1;
  std::function<void(testing::DeviceLikeOps& computes,
                     testing::DeviceLikeOps& exchanges)>
      fails_;
  std::map<int, Tensors> before_fault_;  // by rank, when that step begins
  int tensor_ranks_ = 1;                 // of a replica; these are its last
  std::array<Overlap, 3> overlaps_;      // by rank
  std::shared_ptr<const CheckpointReader> restore_;  // of step 2
  std::map<int, v1::CheckpointFile> files_;          // of step 2, by rank

 private:
  // The objects of the thread of one rank.
  struct Rank {
    int rank, size;
    UpdateOn on;
    bool poison, skip;
    Ops* computes;   // computes the gradients
    Ops* exchanges;  // exchanges them
    Model* model;
  };

  std::unique_ptr<Ops> MakeOps() const;
  std::unique_ptr<AllReduceSynchronizer> MakeSynchronizer(
      const Rank& rank, std::unique_ptr<Communicator> group);
  AllReduceOptions::Checkpoints Checkpoints(int rank);
  Tensors Train(const Rank& rank, std::unique_ptr<Communicator> group,
                absl::Status* status);
  absl::StatusOr<int64_t> TrainStep(const Rank& rank, int64_t step,
                                    AllReduceSynchronizer& synchronizer);
  // Waits for this rank's checkpoint file of step 2: a step that waits for the
  // writer is given up when a later one completes.
  void AwaitFile(const Rank& rank);

  absl::Mutex mu_;
  std::vector<std::string> state_names_;
};

}  // namespace tributary
