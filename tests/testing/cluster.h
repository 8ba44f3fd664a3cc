// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/ops.h"
#include "kernels/sum_and_update.h"
#include "server/service/parameter_server.h"
#include "worker/rank/client/parameter_client.h"

namespace tributary::testing {

// Servers in this process, on free loopback ports, and their clients: a whole
// cluster in one test.
class Cluster {
 public:
  struct Options {
    ParameterSpecs parameters;
    int servers = 1;
    int workers = 1;
    OptimizerOptions optimizer;
    std::function<double(int64_t step)> learning_rate;  // null: the optimizer's
    std::vector<ParameterGroup> groups;
    double clip_norm = 0;
    uint64_t bucket_bytes = 1 << 16;
    uint32_t unanswered_blocks = 0;  // 0: any number
    v1::WireFormat wire = v1::WIRE_FORMAT_FLOAT32;
    v1::WireFormat weights_wire = v1::WIRE_FORMAT_FLOAT32;
    double top_k_fraction = kTopKFraction;
    bool error_feedback = false;
    std::function<std::unique_ptr<SyncPolicy>()> policy;  // null: BSP
    bool shares_memory = false;  // of servers and workers, as on one machine
    SumAndUpdateVersion sum_and_update = BestSumAndUpdateVersion();
  };

  explicit Cluster(const Options& options);
  ~Cluster();

  // Starts a new job: the same servers with fresh state.
  void StartOver();

  const Options& options() const { return options_; }
  const v1::Plan& plan() const { return plan_; }
  ParameterServer& server(int shard) { return *servers_[shard]; }

  // Connects a worker's client; `delay_micros` as in ParameterClient. Even
  // ranks have a network thread, odd ones have none.
  std::unique_ptr<ParameterClient> Connect(
      uint32_t rank, std::function<int64_t()> delay_micros = nullptr,
      absl::Duration step_timeout = absl::Seconds(30));
  // Connects a client with memory for gradients, which it shares once it has
  // read its progress.
  std::unique_ptr<ParameterClient> Connect(uint32_t rank,
                                           std::shared_ptr<SharedArena> memory);

 private:
  void Serve();

  const Options options_;
  const std::unique_ptr<Ops> ops_;
  v1::Plan plan_;
  std::vector<std::unique_ptr<ParameterServer>> servers_;
};

// A model of plain arrays. Its gradient is an arbitrary but reproducible
// function of rank, step and weights.
struct ToyModel {
  explicit ToyModel(const ParameterSpecs& specs);

  // Computes the gradients of a step.
  void Compute(uint32_t rank, int64_t step);
  std::vector<const float*> Gradients() const;
  std::vector<float*> Weights();
  std::vector<const float*> ConstWeights() const;

  std::vector<std::vector<float>> weights;
  std::vector<std::vector<float>> gradients;
};

using Samples = std::function<uint64_t(uint32_t rank, int64_t step)>;

// Trains `steps` steps with one thread per worker, including initialization; a
// step has samples(rank, step) samples. Returns worker 0's weights. Fails the
// test on any error.
std::vector<std::vector<float>> TrainToy(
    const Cluster::Options& options, int64_t steps, const Samples& samples,
    const std::function<std::function<int64_t()>(uint32_t rank)>& delays =
        nullptr);
// The same on an existing cluster.
std::vector<std::vector<float>> TrainToy(
    Cluster& cluster, int64_t steps, const Samples& samples,
    const std::function<std::function<int64_t()>(uint32_t rank)>& delays =
        nullptr);

}  // namespace tributary::testing
