// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpointer.h"
#include "server/service/plan_service.h"
#include "server/service/server_driver.h"
#include "tests/simulation/job/context.h"
#include "tests/simulation/processes/call_judge.h"
#include "tests/simulation/processes/member_host.h"
#include "tests/simulation/processes/simulated_calls.h"

namespace tributary::simulation {

// A server's process: its PlanService and its Checkpointer.
class SimulatedServer final : public DataServer, private DrivenServer {
 public:
  struct Options {
    std::string address;
    std::optional<uint32_t> wanted_index;
  };
  SimulatedServer(int64_t pid, std::string name, Context* context,
                  Options options);
  ~SimulatedServer() override;

  void Start();

  // Takes a call that has arrived.
  void Take(const DataCall& call, Reply<grpc::ByteBuffer> reply) override;

  std::optional<uint32_t> index() const { return index_; }
  const std::string& address() const { return options_.address; }
  // Epoch of the plan being served; 0 if none is.
  uint64_t serving_epoch() const;
  // The oldest version of its blocks; without blocks INT64_MAX, without a plan
  // 0.
  int64_t LeastVersion() const;
  // Returns a text about resources that are still held unnecessarily at the end
  // of a job; "" if there are none.
  std::string Held(bool calls_count) const;

 protected:
  void LetGo() override;

 private:
  class TakenCall;

  void After(int64_t micros, World::Kind kind, std::function<void()> then);
  void Tick();
  // Runs from taking a place to the end of the job.
  absl::Status Live();
  absl::StatusOr<std::unique_ptr<Member>> Join();
  // Reads the checkpoint that the plan continues from, if there is one.
  absl::StatusOr<std::optional<WholeState>> Restored(const v1::Plan& plan);
  PlanService::Options ServiceOptions();
  ShardSetup MakeSetup(const v1::Plan& plan, const PartitionPlan& partition);
  void PrepareCheckpoints(const v1::Plan& plan, const PartitionPlan& partition,
                          ShardSetup* setup);

  absl::Status Start(const v1::Plan& plan) override;
  absl::Status Fatal() const override { return absl::OkStatus(); }
  absl::Status CutAll(int64_t step, bool best) override;
  void ShowWait(const v1::Plan&) override {}
  void Served() override {}

  std::shared_ptr<ServedPlan> served() const {
    return plans_ ? plans_->handlers().served() : nullptr;
  }
  void Handle(const std::string& method, ServedCall* call);

  Context* const context_;
  const Options options_;
  MemberHost host_;
  Member* member_ = nullptr;  // while it lives
  std::optional<uint32_t> index_;
  std::shared_ptr<TagQueue> tags_;
  std::optional<PlanService> plans_;  // while the process lives
  std::shared_ptr<CallJudge> judge_;  // of the plan that is served
  // Calls without an answer yet, in the order in which they came.
  std::map<int64_t, std::unique_ptr<TakenCall>> calls_;
  int64_t last_call_ = 0;
  std::shared_ptr<Checkpointer> checkpointer_;
};

}  // namespace tributary::simulation
