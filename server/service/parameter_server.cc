#include "server/service/parameter_server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"
#include "common/wire/channel.h"
#include "common/wire/deadline.h"
#include "common/wire/tensor_frame.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

constexpr absl::Duration kTickInterval = absl::Milliseconds(100);
constexpr absl::Duration kLastAnswers = absl::Seconds(1);
constexpr int kSlotsPerMethod = 8;

}  // namespace

// Wakes the queue's thread regularly, to answer calls past their deadline, to
// sample RankWaits and to drop retired plans.
class ParameterServer::Tick final : public CompletionTag {
 public:
  explicit Tick(ParameterServer* server) : server_(server) { Set(); }
  void Proceed(bool ok) override {
    if (!ok || server_->refusing_) return;
    if (auto serving = server_->serving()) {
      const int64_t now = server_->options_.clock->NowMicros();
      serving->store->ExpireWaiters(now);
      serving->waits.Sample(now, serving->store->MissingRanks());
    }
    auto& retired = server_->retired_;
    retired.erase(
        std::remove_if(retired.begin(), retired.end(),
                       [](const auto& old) { return old->peers->idle(); }),
        retired.end());
    Set();
  }
  void Cancel() { alarm_.Cancel(); }

 private:
  void Set() {
    alarm_.Set(server_->queue_.get(), DeadlineAfter(kTickInterval),
               static_cast<CompletionTag*>(this));
  }
  ParameterServer* const server_;
  grpc::Alarm alarm_;
};

namespace {

// Runs a function on the queue's thread, soon.
class Posted final : public CompletionTag {
 public:
  Posted(grpc::CompletionQueue* queue, std::function<void()> work)
      : work_(std::move(work)) {
    alarm_.Set(queue, DeadlineAfter(absl::ZeroDuration()),
               static_cast<CompletionTag*>(this));
  }
  void Proceed(bool /*ok*/) override {
    work_();
    delete this;
  }

 private:
  const std::function<void()> work_;
  grpc::Alarm alarm_;
};

}  // namespace

ParameterServer::ParameterServer(Options options)
    : options_(std::move(options)) {}

void ParameterServer::RunOnLoop(std::function<void()> work) {
  new Posted(queue_.get(), std::move(work));
}

absl::StatusOr<std::unique_ptr<ParameterServer>> ParameterServer::Start(
    Options options) {
  std::unique_ptr<ParameterServer> server(
      new ParameterServer(std::move(options)));
  TRIBUTARY_RETURN_IF_ERROR(server->Listen());
  return server;
}

absl::Status ParameterServer::Listen() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options_.listen, grpc::InsecureServerCredentials(),
                           &port_);
  builder.RegisterService(&service_);
  builder.RegisterAsyncGenericService(side_calls_.service());
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  LimitConnections(&builder);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  if (!server_ || port_ == 0) {
    server_.reset();
    queue_->Shutdown();
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", options_.listen,
        ": is the port taken, or the address not this machine's?"));
  }
  PostAll();
  side_calls_.Start(queue_.get());
  tick_ = std::make_unique<Tick>(this);
  thread_ = std::thread([this] { Loop(); });
  return absl::OkStatus();
}

void ParameterServer::PostAll() {
  const auto post = [this](auto request, auto handle) {
    for (int i = 0; i < kSlotsPerMethod; ++i) {
      RawCall::Post(
          [this, request](auto* context, auto* bytes, auto* writer, void* tag) {
            (service_.*request)(context, bytes, writer, queue_.get(),
                                queue_.get(), tag);
          },
          [this, handle](RawCall* call) {
            if (refusing_) {
              call->Fail(
                  absl::UnavailableError("this server is shutting down"));
            } else {
              (this->*handle)(call);
            }
          });
    }
  };
  using Service = RawParameterService;
  post(&Service::RequestPushPull, &ParameterServer::HandlePushPull);
  post(&Service::RequestPull, &ParameterServer::HandlePull);
  post(&Service::RequestReadClock, &ParameterServer::HandleReadClock);
  post(&Service::RequestInitialize, &ParameterServer::HandleInitialize);
  post(&Service::RequestReadStatistics, &ParameterServer::HandleReadStatistics);
  post(&Service::RequestGetServerStatus,
       &ParameterServer::HandleGetServerStatus);
}

void ParameterServer::Loop() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    static_cast<CompletionTag*>(tag)->Proceed(ok && !draining_);
  }
}

absl::Status ParameterServer::Serve(const v1::Plan& plan, Training training) {
  TRIBUTARY_ASSIGN_OR_RETURN(PartitionPlan partition, MakePartitionPlan(plan));
  const int shard = training.shard.shard;
  if (shard < 0 || shard >= plan.servers_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("shard ", shard, " of ", plan.servers_size(), " servers"));
  }
  {
    absl::MutexLock lock(&mu_);
    if (plan.epoch() <= last_epoch_) {
      return absl::InvalidArgumentError(absl::StrCat(
          "plan epoch ", plan.epoch(), " comes after epoch ", last_epoch_));
    }
    last_epoch_ = plan.epoch();
    if (serving_) {
      RunOnLoop([this, old = std::exchange(serving_, nullptr)]() mutable {
        Retire(std::move(old));
      });
    }
  }
  auto serving = std::make_shared<Serving>(plan, std::move(partition), shard);
  Serving* raw = serving.get();
  serving->peers = std::make_unique<PeerStatistics>(
      plan, serving->partition, shard, queue_.get(),
      [raw](int64_t step, StatisticsKind kind, int from,
            std::vector<double> values) {
        if (absl::Status status =
                raw->store->AddStatistics(step, kind, from, std::move(values));
            !status.ok()) {
          spdlog::error("{}", std::string(status.message()));
        }
      });
  training.shard.plan = &serving->partition;
  training.shard.num_workers = plan.num_workers();
  if (plan.has_mesh()) training.shard.mesh = MeshOf(plan);
  training.shard.fetch_statistics = [raw](int64_t step, StatisticsKind kind) {
    raw->peers->Fetch(step, kind);
  };
  serving->store = std::make_unique<ParameterShard>(std::move(training.shard));
  if (training.load_block) {
    TRIBUTARY_RETURN_IF_ERROR(serving->store->Restore(
        plan.start_step() / training.steps_an_update, training.load_block));
    if (training.on_loaded) TRIBUTARY_RETURN_IF_ERROR(training.on_loaded());
  }
  unread_->SetLimits(LimitsFor(*serving));
  absl::MutexLock lock(&mu_);
  serving_ = std::move(serving);
  return absl::OkStatus();
}

// A worker that reads its answers has one answer per block in transit, or two
// when it repeats a call meanwhile. Together the workers hold at most one
// version each, besides the two that a block keeps.
UnreadAnswers::Limits ParameterServer::LimitsFor(const Serving& serving) {
  const uint64_t shard_bytes =
      sizeof(float) *
      static_cast<uint64_t>(serving.partition.shard_elements(serving.shard));
  const auto workers = static_cast<uint64_t>(serving.plan.num_workers());
  return {.peer_bytes = 2 * shard_bytes + kMaxMessageBytes,
          .bytes = (workers + 2) * shard_bytes + kMaxMessageBytes};
}

void ParameterServer::Retire(std::shared_ptr<Serving> serving) {
  serving->peers->Cancel();
  serving->store->ExpireWaiters(INT64_MAX);
  retired_.push_back(std::move(serving));
}

std::shared_ptr<ParameterServer::Serving> ParameterServer::serving() const {
  absl::MutexLock lock(&mu_);
  return serving_;
}

void ParameterServer::Shutdown() {
  {
    absl::MutexLock lock(&mu_);
    if (shut_down_) return;
    shut_down_ = true;
  }
  if (!server_) return;
  // Runs on the queue's thread, so that no operation starts on a queue that has
  // been shut down.
  RunOnLoop([this] {
    refusing_ = true;
    side_calls_.GoHome();
    if (auto held = serving()) held->store->ExpireWaiters(INT64_MAX);
  });
  // Answers that have been started still arrive.
  server_->Shutdown(DeadlineAfter(kLastAnswers));
  RunOnLoop([this] {
    draining_ = true;
    side_calls_.Drain();
    tick_->Cancel();
    if (auto held = serving()) held->peers->Cancel();
    queue_->Shutdown();
  });
  thread_.join();
}

ParameterServer::~ParameterServer() { Shutdown(); }

}  // namespace tributary
