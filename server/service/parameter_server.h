#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/plan/partition_plan.h"
#include "common/telemetry/metrics_writer.h"
#include "server/service/peer_statistics.h"
#include "server/service/rank_waits.h"
#include "server/service/raw_call.h"
#include "server/service/side_calls.h"
#include "server/service/unread_answers.h"
#include "server/store/parameter_shard.h"
#include "server/store/rejection.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// Serves one shard over gRPC: decodes and validates calls, hands them to the
// shard, and sends the shard's responses. One thread on one completion queue
// does all of this: a hand-over to another thread would cost more than the work
// of a block.
class ParameterServer {
 public:
  struct Options {
    std::string listen = "127.0.0.1:0";
    const Clock* clock = &Clock::Real();
  };
  // What the server needs to serve a plan's shard, besides the plan itself.
  struct Training {
    // Serve fills in plan, mesh, num_workers and fetch_statistics.
    ParameterShard::Options shard;
    // Fills a block from the checkpoint that the plan restores; null: the plan
    // restores none.
    ParameterShard::LoadBlock load_block;
    // Called after the last block was loaded; on an error nothing is served.
    std::function<absl::Status()> on_loaded;
    int64_t steps_an_update = 1;  // steps of the job per gathered step
  };

  // Starts to listen. Until Serve, every call is answered with Unavailable.
  static absl::StatusOr<std::unique_ptr<ParameterServer>> Start(
      Options options);
  ~ParameterServer();

  int port() const { return port_; }

  // Starts to serve a plan and ends the previous one: the waiting calls of the
  // previous plan are answered with errors and its weights are gone. While
  // Serve runs, and after an error, calls are answered with Unavailable.
  // InvalidArgument: the errors of MakePartitionPlan, a shard out of range, or
  // an epoch that is not later than the previous one. Other errors come from
  // load_block and on_loaded.
  absl::Status Serve(const v1::Plan& plan, Training training);

  v1::ServerStatusResponse GetStatus() const;
  // Writes the metrics for an exporter; nothing before there is a plan.
  void WriteMetrics(MetricsWriter* writer) const;

  // Answers the waiting calls, refuses new ones and ends the thread.
  // Idempotent.
  void Shutdown();

 private:
  // A plan being served. The calls in progress share its ownership.
  struct Serving {
    v1::Plan plan;
    PartitionPlan partition;
    int shard = 0;
    std::unique_ptr<PeerStatistics> peers;
    std::unique_ptr<ParameterShard> store;
    RankWaits waits;
    Serving(v1::Plan p, PartitionPlan cut, int s)
        : plan(std::move(p)),
          partition(std::move(cut)),
          shard(s),
          waits(plan.num_workers()) {}
  };
  class Tick;

  explicit ParameterServer(Options options);

  absl::Status Listen();
  void PostAll();
  void Loop();
  void RunOnLoop(std::function<void()> work);
  // Limits of the plan's memory that may be held by answers that peers do not
  // read.
  static UnreadAnswers::Limits LimitsFor(const Serving& serving);
  // Ends the plan that is served. Runs on the queue's thread, which owns
  // retired_.
  void Retire(std::shared_ptr<Serving> serving);
  std::shared_ptr<Serving> serving() const;
  static absl::Status CheckAddress(const Serving* serving,
                                   const v1::BlockAddress& address);
  int64_t Deadline(uint32_t wait_ms) const;
  // Answers with the error and counts its reason.
  void Fail(RawCall* call, const absl::Status& status);
  // Returns a callback that answers a call with weights or a status.
  template <typename Response>
  WeightsDone AnswerWeights(RawCall* call);

  void HandlePushPull(RawCall* call);
  void HandlePull(RawCall* call);
  void HandleReadClock(RawCall* call);
  void HandleInitialize(RawCall* call);
  void HandleReadStatistics(RawCall* call);
  void HandleGetServerStatus(RawCall* call);

  const Options options_;
  int port_ = 0;
  RawParameterService service_;
  SideCalls side_calls_{{v1::ParameterService::service_full_name()}};
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Tick> tick_;
  std::thread thread_;
  bool refusing_ = false;  // These two belong to the queue's thread.
  bool draining_ = false;
  // Ended plans, kept until their last call has returned. Only the queue's
  // thread uses them.
  std::vector<std::shared_ptr<Serving>> retired_;
  RejectionCounters rejections_;
  std::atomic<uint64_t> bytes_received_{0};
  std::atomic<uint64_t> bytes_sent_{0};
  const std::shared_ptr<UnreadAnswers> unread_ =
      std::make_shared<UnreadAnswers>();

  mutable absl::Mutex mu_;
  std::shared_ptr<Serving> serving_ ABSL_GUARDED_BY(mu_);
  uint64_t last_epoch_ ABSL_GUARDED_BY(mu_) = 0;
  bool shut_down_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace tributary
