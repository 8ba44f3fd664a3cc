#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/ops.h"
#include "server/service/parameter_server.h"
#include "worker/client/parameter_client.h"

namespace tributary::testing {

// Servers in this process, on free ports of the loopback, and clients to them:
// a whole cluster in one test. The rate of every step is options.learning_rate.
class Cluster {
 public:
  struct Options {
    ParameterSpecs parameters;
    int servers = 1;
    int workers = 1;
    OptimizerOptions optimizer;
    double clip_norm = 0;
    uint64_t bucket_bytes = 1 << 16;
    std::function<std::unique_ptr<SyncPolicy>()> policy;  // none: BSP
  };

  explicit Cluster(const Options& options);
  ~Cluster();

  // A new job: the same servers, everything else from the beginning.
  void StartOver();

  const Options& options() const { return options_; }
  const v1::Plan& plan() const { return plan_; }
  ParameterServer& server(int shard) { return *servers_[shard]; }

  // A worker's client; `delay_micros` as in ParameterClient.
  std::unique_ptr<ParameterClient> Connect(
      uint32_t rank, std::function<int64_t()> delay_micros = nullptr,
      absl::Duration step_timeout = absl::Seconds(30));

 private:
  void Serve();

  const Options options_;
  const std::unique_ptr<Ops> ops_;
  v1::Plan plan_;
  std::vector<std::unique_ptr<ParameterServer>> servers_;
};

// A model of plain arrays whose gradient is a made-up function of rank, step
// and weights: what a cluster does to it is reproducible and known.
struct ToyModel {
  explicit ToyModel(const ParameterSpecs& specs);

  // Fills the gradients for a step.
  void Compute(uint32_t rank, int64_t step);
  std::vector<const float*> Gradients() const;
  std::vector<float*> Weights();
  std::vector<const float*> ConstWeights() const;

  std::vector<std::vector<float>> weights;
  std::vector<std::vector<float>> gradients;
};

using Samples = std::function<uint64_t(uint32_t rank, int64_t step)>;

// Each worker a thread: initializes, trains `steps` steps with samples(rank,
// step) samples, and returns worker 0's weights. Fails the test on any error.
std::vector<std::vector<float>> TrainToy(
    const Cluster::Options& options, int64_t steps, const Samples& samples,
    const std::function<std::function<int64_t()>(uint32_t rank)>& delays =
        nullptr);
// The same on a cluster that is there.
std::vector<std::vector<float>> TrainToy(
    Cluster& cluster, int64_t steps, const Samples& samples,
    const std::function<std::function<int64_t()>(uint32_t rank)>& delays =
        nullptr);

}  // namespace tributary::testing
