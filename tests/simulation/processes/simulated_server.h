#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/snapshot_collector.h"
#include "server/store/parameter_shard.h"
#include "tests/simulation/job/context.h"
#include "tests/simulation/processes/member_agent.h"
#include "tests/testing/contribution_ledger.h"
#include "tributary/v1/parameter_service.pb.h"
#include "tributary/v1/plan.pb.h"

namespace tributary::simulation {

// The calls of a parameter server, as the messages in parameter_service.proto.
v1::BlockAddress AddressOf(const v1::Plan& plan, int shard, int block);
struct PushCall {
  v1::BlockAddress address;
  Contribution contribution;
  int64_t wait_micros = 0;
};
struct PullCall {
  v1::BlockAddress address;
  int64_t version = 0;
  bool exact = false;
  std::optional<Reader> reader;  // instead of a version
  int64_t wait_micros = 0;
};
struct ClockCall {
  v1::BlockAddress address;
  uint32_t rank = 0;
  uint64_t incarnation = 0;
  bool recomputes = false;
};
struct FirstWeights {
  v1::BlockAddress address;
  std::vector<float> values;
  int64_t wait_micros = 0;  // of no use: this call does not wait
};
struct StatisticsCall {
  v1::BlockAddress address;  // without a block
  int64_t step = 0;
  StatisticsKind kind = StatisticsKind::kGradientNorm;
  int64_t wait_micros = 0;
};
struct Nothing {};

// A server's process: a ParameterShard for each plan that it serves, and the
// work of RunServer, ParameterServer, PeerStatistics and Checkpointer.
class SimulatedServer final : public Process {
 public:
  struct Options {
    std::string address;
    std::optional<uint32_t> wanted_index;
  };
  SimulatedServer(int64_t pid, std::string name, Context* context,
                  Options options);
  ~SimulatedServer() override;

  void Start();

  // The service's calls.
  void PushPull(const PushCall& call, Reply<WeightsSnapshot> reply);
  void Pull(const PullCall& call, Reply<WeightsSnapshot> reply);
  void ReadClock(const ClockCall& call, Reply<ParameterShard::Clock> reply);
  void Initialize(const FirstWeights& call, Reply<Nothing> reply);
  void ReadStatistics(const StatisticsCall& call,
                      Reply<std::vector<double>> reply);

  std::optional<uint32_t> index() const { return index_; }
  const std::string& address() const { return options_.address; }
  // Epoch of the plan being served; 0: none.
  uint64_t serving_epoch() const;
  // At the end of a job: resources that are still held unnecessarily; empty:
  // none.
  std::string Held() const;

 protected:
  void LetGo() override;

 private:
  struct Serving;
  struct FileWriter;
  using ServingPtr = std::shared_ptr<Serving>;

  void After(int64_t micros, World::Kind kind, std::function<void()> then);
  void AwaitPlan();
  void OnNews();
  void Prepare(const v1::Plan& plan);
  void Serve(const v1::Plan& plan, std::optional<WholeState> restored);
  ParameterShard::Options ShardOptions(const ServingPtr& serving);
  void Retire(ServingPtr serving);
  void ExpireNow();
  void Exit(const absl::Status& status);
  void Fail(const absl::Status& status);

  absl::Status CheckAddress(const v1::BlockAddress& address) const;
  void Judge(const absl::Status& status, const v1::BlockAddress& address);
  // Wraps a reply so that the oracle checks the weights in it.
  WeightsDone Watch(const v1::BlockAddress& address,
                    std::optional<Reader> reader, Reply<WeightsSnapshot> reply);

  void Fetch(const ServingPtr& serving, int64_t step, StatisticsKind kind,
             int from);

  void WriteNext(const std::shared_ptr<FileWriter>& writer);
  void Report(const FileWriter& writer, const WrittenSnapshot& written);
  void Report(const v1::CheckpointReport& report);

  Context* const context_;
  const Options options_;
  MemberAgent member_;
  std::optional<uint32_t> index_;
  uint64_t epoch_ = 0;
  bool waits_for_plan_ = false;
  ServingPtr serving_;
  std::shared_ptr<FileWriter> writer_;
};

}  // namespace tributary::simulation
