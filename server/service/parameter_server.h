// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/plan/partition_plan.h"
#include "common/telemetry/metrics_writer.h"
#include "common/wire/calls/posted_work.h"
#include "common/wire/identity/call_guard.h"
#include "common/wire/identity/caller_proof.h"
#include "common/wire/port/peer_port.h"
#include "common/wire/side/side_calls.h"
#include "server/service/calls/raw_call.h"
#include "server/service/plan_service.h"
#include "server/service/served_plan.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// Serves one shard over gRPC. One thread on one completion queue takes the
// calls, runs ParameterHandlers and sends the answers: a hand-over to another
// thread would cost more than the work of a block.
class ParameterServer {
 public:
  struct Options {
    std::string listen = "127.0.0.1:0";
    // The directory of the socket for workers of this machine, which share
    // memory if the plan allows it, and whether workers of every user may use
    // the socket (MemoryListener::Options).
    std::string memory_directory;
    bool memory_any_user = false;
    const Clock* clock = &Clock::Real();
    // Decides who may call; never null.
    std::shared_ptr<CallGuard> guard = CallGuard::Open();
    bool reflection = false;  // describes its services to those who may ask
  };
  using Restore = PlanService::Restore;

  // Starts to listen. Until Serve, every call is answered with Unavailable.
  static absl::StatusOr<std::unique_ptr<ParameterServer>> Start(
      Options options);
  ~ParameterServer();

  int port() const { return port_->port(); }

  // Sets the proof that this server shows to others, once it has a place in a
  // job. Call it before Serve.
  void SetProof(CallerProof proof) { proof_ = std::move(proof); }

  // As PlanService::Serve.
  absl::Status Serve(const v1::Plan& plan, PartitionPlan partition,
                     ShardSetup setup, const Restore& restore = {});

  // Hands over a snapshot of every block, as ShardBlocks::CutAll.
  absl::Status CutAll(int64_t steps) { return plans_.CutAll(steps); }

  v1::ServerStatusResponse GetStatus() const {
    return plans_.handlers().Status();
  }
  // Writes the metrics for an exporter; nothing before there is a plan.
  void WriteMetrics(MetricsWriter* writer) const {
    plans_.handlers().WriteMetrics(writer);
  }

  // Answers the waiting calls, refuses new ones and ends the thread.
  // Idempotent.
  void Shutdown();

 private:
  class Tick;

  explicit ParameterServer(Options options);

  absl::Status Listen();
  void ListenForMemory();
  void PostAll();
  void Loop();
  void RunOnLoop(std::function<void()> work);

  const Options options_;
  CallerProof proof_;
  std::unique_ptr<PeerPort> port_;
  RawParameterService service_;
  SideCalls side_calls_;
  PostedWork posted_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Tick> tick_;
  std::thread thread_;
  bool refusing_ = false;  // These two belong to the queue's thread.
  bool draining_ = false;
  PlanService plans_;
  std::unique_ptr<MemoryListener> memory_listener_;  // null: none could be made

  mutable absl::Mutex mu_;
  bool shut_down_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace tributary
