// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/snapshot_collector.h"
#include "server/service/server_driver.h"
#include "tests/simulation/job/context.h"
#include "tests/simulation/processes/checked_plan.h"
#include "tests/simulation/processes/member_host.h"
#include "tests/simulation/processes/simulated_checkpointer.h"

namespace tributary::simulation {

// A server's process: the plan that it serves and the writer of its
// checkpoints.
class SimulatedServer final : public Process, private DrivenServer {
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
  void PushPull(const PushCall& call, Reply<WeightsSnapshot> reply) {
    Handle(&CheckedPlan::PushPull, call, std::move(reply));
  }
  void Pull(const PullCall& call, Reply<WeightsSnapshot> reply) {
    Handle(&CheckedPlan::Pull, call, std::move(reply));
  }
  void ReadClock(const ClockCall& call, Reply<RankProgress> reply) {
    Handle(&CheckedPlan::ReadClock, call, std::move(reply));
  }
  void Initialize(const FirstWeights& call, Reply<Nothing> reply) {
    Handle(&CheckedPlan::Initialize, call, std::move(reply));
  }
  void ReadStatistics(const v1::StatisticsRequest& request,
                      Reply<std::vector<double>> reply);

  std::optional<uint32_t> index() const { return index_; }
  const std::string& address() const { return options_.address; }
  // Epoch of the plan being served; 0: none.
  uint64_t serving_epoch() const;
  // At the end of a job: resources that are still held unnecessarily; empty:
  // none.
  std::string Held(bool calls_count) const;

 protected:
  void LetGo() override;

 private:
  void After(int64_t micros, World::Kind kind, std::function<void()> then);
  void Tick();
  // From its place to the end of the job.
  absl::Status Live();
  absl::StatusOr<std::unique_ptr<Member>> Join();
  // The checkpoint that the plan goes on from.
  absl::StatusOr<std::optional<WholeState>> Restored(const v1::Plan& plan);
  void CloseCheckpointer();
  void EndPlan();
  ShardSetup MakeSetup(const v1::Plan& plan, const PartitionPlan& partition);

  absl::Status Start(const v1::Plan& plan) override;
  absl::Status Fatal() const override { return absl::OkStatus(); }
  absl::Status CutAll(int64_t step) override;
  void ShowWait(const v1::Plan&) override {}
  void Served() override {}

  // The plan that the call is for; null: the call was answered with an error.
  template <typename Address, typename T>
  std::shared_ptr<CheckedPlan> Accept(const Address& address,
                                      const Reply<T>& reply) const {
    const absl::Status status = ServedPlan::CheckAddress(
        serving_ ? &serving_->served() : nullptr, address);
    if (status.ok()) return serving_;
    reply(status);
    return nullptr;
  }
  template <typename Call, typename T>
  void Handle(void (CheckedPlan::*method)(const Call&, Reply<T>),
              const Call& call, Reply<T> reply) {
    const auto serving = Accept(call.address, reply);
    if (serving) (*serving.*method)(call, std::move(reply));
  }
  void Ask(const v1::StatisticsRequest& request);

  void Report(const v1::CheckpointReport& report);

  Context* const context_;
  const Options options_;
  MemberHost host_;
  Member* member_ = nullptr;  // while it lives
  std::optional<uint32_t> index_;
  v1::Plan plan_;  // the newest
  std::shared_ptr<CheckedPlan> serving_;
  std::shared_ptr<SimulatedCheckpointer> checkpointer_;
};

}  // namespace tributary::simulation
