// SPDX-License-Identifier: Apache-2.0
// The real client and the real server.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/push_pull/channels.h"
#include "common/plan/plan_codec.h"
#include "common/wire/channel.h"
#include "kernels/ops.h"
#include "server/service/parameter_server.h"
#include "worker/rank/client/parameter_client.h"

namespace tributary::bench {
namespace {

constexpr size_t kParameters = 16;  // of equal size, unless there are few bytes

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(value);
}

void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

v1::Plan PlanOf(const Work& work, const std::string& addresses) {
  v1::Plan plan;
  plan.set_job_id(1);
  plan.set_epoch(1);
  plan.set_bucket_bytes(work.chunk * work.servers);  // shared by the shards
  plan.set_num_workers(work.workers);
  const size_t floats = work.bytes / sizeof(float);
  const size_t parameters = std::min(kParameters, floats);
  for (size_t p = 0; p < parameters; ++p) {
    v1::ParameterSpec* const spec = plan.add_parameters();
    spec->set_name(absl::StrCat(p, ".weight"));
    spec->add_shape(static_cast<int64_t>(floats / parameters));
  }
  for (const auto address : absl::StrSplit(addresses, ' ')) {
    plan.add_servers(std::string(address));
  }
  return plan;
}

class TributaryChannel final : public Channel {
 public:
  explicit TributaryChannel(bool shares_memory)
      : shares_memory_(shares_memory) {}

  std::string name() const override {
    return shares_memory_ ? "shared memory" : "gRPC";
  }

  void Serve(const Work& work, int server, Wire& wire) const override {
    PrepareForTransfers();
    const std::unique_ptr<Ops> ops = CreateCpuOps();
    const auto parameter_server = Must(ParameterServer::Start({}));
    wire.Send(absl::StrCat("127.0.0.1:", parameter_server->port()));
    const v1::Plan plan = PlanOf(work, wire.Receive());
    ShardSetup setup;
    setup.shard = server;
    setup.training.optimizer.learning_rate = 1e-6;
    setup.training.learning_rate = [](int64_t) { return 1e-6; };
    setup.training.policy = std::make_unique<BulkSynchronous>();
    setup.ops = ops.get();
    setup.shares_memory = shares_memory_;
    Must(parameter_server->Serve(plan, Must(MakePartitionPlan(plan)),
                                 std::move(setup)));
    ServeMeasured(wire);
    parameter_server->Shutdown();
  }

  void Drive(const Work& work, int worker, Wire& wire) const override {
    PrepareForTransfers();
    const v1::Plan plan = PlanOf(work, wire.Receive());
    const std::shared_ptr<SharedArena> memory = Must(SharedArena::Create(
        kParameters * SharedArena::Taken(work.bytes / kParameters)));
    ParameterClient::Options options;
    options.plan = plan;
    options.rank = static_cast<uint32_t>(worker);
    options.incarnation = 1;
    options.transport =
        shares_memory_ ? Transport::kSharedMemory : Transport::kGrpc;
    options.gradient_memory = memory;
    if (work.network_threads > 0) {
      options.for_tests.network_threads = work.network_threads;
    }
    const auto client = Must(ParameterClient::Connect(std::move(options)));
    std::vector<std::vector<float>> weights;
    std::vector<SharedBuffer> gradients;
    for (const v1::ParameterSpec& spec : plan.parameters()) {
      weights.emplace_back(spec.shape(0), 0.5f);
      gradients.emplace_back(spec.shape(0), /*stagger=*/0, memory);
      std::fill_n(gradients.back().data(), spec.shape(0), 0.25f);
    }
    std::vector<const float*> start;
    std::vector<const float*> sent;
    std::vector<float*> received;
    for (size_t p = 0; p < weights.size(); ++p) {
      start.push_back(weights[p].data());
      sent.push_back(gradients[p].data());
      received.push_back(weights[p].data());
    }
    // The blocks in the order of the backward pass, from each server in turn.
    std::vector<const Block*> blocks;
    const PartitionPlan& partition = client->partition();
    for (size_t i = 0; static_cast<int>(blocks.size()) < partition.num_blocks();
         ++i) {
      for (int shard = 0; shard < partition.num_shards(); ++shard) {
        if (i >= partition.blocks(shard).size()) continue;
        blocks.push_back(&partition.blocks(shard)[i]);
      }
    }
    Must(client->ReadProgress());  // connects to shared memory
    Must(client->Initialize(start));
    int64_t step = 0;
    DriveMeasured(work, wire, [&] {
      client->BeginStep(step++, 1, sent, received);
      for (const Block* block : blocks) client->PushPull(*block);
      Must(client->FinishStep());
    });
  }

 private:
  const bool shares_memory_;
};

}  // namespace

const Channel& OverGrpc() {
  static const TributaryChannel channel(/*shares_memory=*/false);
  return channel;
}

const Channel& OverSharedMemory() {
  static const TributaryChannel channel(/*shares_memory=*/true);
  return channel;
}

}  // namespace tributary::bench
