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

// Serves one shard over gRPC: decodes, validates, hands on to the shard, and
// answers when the shard does. One thread on one completion queue does it all:
// a hand-over to another thread costs more than the work of a block.
class ParameterServer {
 public:
  struct Options {
    std::string listen = "127.0.0.1:0";
    const Clock* clock = &Clock::Real();
  };
  // What it takes to serve a plan's shard, beside the plan.
  struct Training {
    // plan, num_workers and fetch_statistics are filled in by Serve.
    ParameterShard::Options shard;
    // Set where the plan restores a checkpoint: fills a block from it.
    ParameterShard::LoadBlock load_block;
    // Then, after the last block; an error: nothing is served.
    std::function<absl::Status()> on_loaded;
    int64_t steps_an_update = 1;  // of the job, for each gathered step
  };

  // Listens; until Serve every call is answered with Unavailable.
  static absl::StatusOr<std::unique_ptr<ParameterServer>> Start(
      Options options);
  ~ParameterServer();

  int port() const { return port_; }

  // Begins to serve, instead of an earlier plan when there is one: its calls
  // are answered with errors and its weights are gone. Meanwhile, and after an
  // error, calls are answered with Unavailable. InvalidArgument: as
  // MakePartitionPlan, a shard out of range, an epoch that is no later one.
  // Otherwise errors of load_block.
  absl::Status Serve(const v1::Plan& plan, Training training);

  v1::ServerStatusResponse GetStatus() const;
  // For an exporter; nothing before there is a plan.
  void WriteMetrics(MetricsWriter* writer) const;

  // Answers the calls that wait, refuses new ones, ends the thread. Idempotent.
  void Shutdown();

 private:
  // A plan being served. Shared with the calls that are inside it.
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
  // How much of a plan may be on its way to peers that do not read.
  static UnreadAnswers::Limits LimitsFor(const Serving& serving);
  // Ends the plan that is served. On the loop's thread: see retired_.
  void Retire(std::shared_ptr<Serving> serving);
  std::shared_ptr<Serving> serving() const;
  static absl::Status CheckAddress(const Serving* serving,
                                   const v1::BlockAddress& address);
  int64_t Deadline(uint32_t wait_ms) const;
  // Answers with the error and counts its reason.
  void Fail(RawCall* call, const absl::Status& status);
  // Answers a call with weights or a status.
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
  bool refusing_ = false;  // these two: the queue's thread alone
  bool draining_ = false;
  // Plans that are over, until their last call has come back; the queue's
  // thread alone.
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
