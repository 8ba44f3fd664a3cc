// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/device_mesh.h"
#include "common/base/parameter_memory.h"
#include "common/base/parameter_spec.h"
#include "common/base/replaced_mean.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/checkpointer.h"
#include "common/optimizer/optimizer_options.h"
#include "common/optimizer/parameter_group.h"
#include "common/status/cause.h"
#include "worker/rank/collective/communicator.h"
#include "worker/rank/parallel/device/exchange_device.h"

namespace tributary {

// Options of an AllReduceSynchronizer.
struct AllReduceOptions {
  // Says which part of a replica the model is.
  struct Part {
    ParameterSpecs planned;  // of all parts; empty: the model is whole
    DeviceMesh mesh;
    DeviceMesh::Place place;         // of this rank
    std::vector<int> place_in_plan;  // of each of the model's parameters
    // All ranks of one replica, in rank order, for arrays in host memory. Null
    // when the model is whole or no step needs sums over the whole model.
    std::unique_ptr<Communicator> group;

    // True when this rank writes the parameter for its replica.
    bool Writes(int parameter) const {
      const Holders& holders = planned[place_in_plan[parameter]].holders;
      return place.stage == std::max(0, holders.stage) &&
             place.tensor == std::max(0, holders.tensor);
    }
  };
  // The ranks that run the optimizer and hold its state.
  enum class UpdateOn {
    kEveryRank,  // every rank, on the whole model
    kOwnCut,     // every rank, on its share of every bucket
    kRankZero,   // rank 0 only
  };
  struct Update {
    UpdateOn on = UpdateOn::kEveryRank;
    OptimizerOptions optimizer;
    std::function<double(int64_t step)> learning_rate;
    std::vector<ParameterGroup> groups;
    double clip_norm = 0;
    bool skip_nonfinite = false;  // else a step with a NaN fails
  };
  // Every `every_steps` steps (0: never) the ranks compare their weights and
  // write a checkpoint: with kOwnCut each rank writes its share, else replica 0
  // writes everything.
  struct Checkpoints {
    int64_t every_steps = 0;
    // True when the ranks also do so after the job's last step, `step`,
    // although no checkpoint is due (LeavesCheckpointAtEnd); null: never.
    std::function<bool(int64_t step)> at_end;
    std::string directory;
    uint64_t job_id = 0, lineage = 0, plan_epoch = 0;
    bool digests = false;  // as ShardFileSeries
    // Called on the checkpointer's thread.
    std::function<void(const Checkpointer::Written&,
                       const std::vector<std::string>& state_names)>
        on_written;
    // The checkpoint from which training continues after `start_step` steps,
    // with the model's parameters and the optimizer's state; or null.
    std::shared_ptr<const CheckpointReader> restore;
    int64_t start_step = 0;
  };

  ExchangeDevice device;
  // All data-parallel ranks of this part, for arrays on the device of `ops`.
  std::unique_ptr<Communicator> group;
  // Outlives the synchronizer. Its gradients lie in one array, in the order of
  // the parameters, and its weights in another, in the same way.
  ParameterMemory* model = nullptr;
  Part part;
  int64_t bucket_bytes = 25 << 20, first_bucket_bytes = 1 << 20;
  Update update;
  // With any value but kAsGradients, the arrays must lie in host memory.
  ReplacedMean replaced_mean = ReplacedMean::kAsGradients;
  // Returns the samples of every rank in a step, counted from 0. Null: a rank
  // knows only its own, so the ranks exchange their samples in each step.
  std::function<std::vector<uint64_t>(int64_t step)> samples;
  Checkpoints checkpoints;
  // Called with the rank that a step waits for, and then with an empty Wait.
  std::function<void(const v1::Wait&)> on_waiting;

  bool replicated() const { return update.on == UpdateOn::kEveryRank; }
  bool cut() const { return update.on == UpdateOn::kOwnCut; }
};

}  // namespace tributary
