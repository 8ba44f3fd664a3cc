// SPDX-License-Identifier: Apache-2.0
#include "server/service/parameter_server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "common/wire/calls/completion_tag.h"
#include "common/wire/calls/grpc_calls.h"
#include "common/wire/channel.h"
#include "common/wire/deadline.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

constexpr absl::Duration kTickInterval = absl::Milliseconds(100);
constexpr absl::Duration kLastAnswers = absl::Seconds(1);
constexpr int kSlotsPerMethod = 8;
// A step that waits for the norm of the whole gradient holds one call for each
// block of the plan.
constexpr int kMostCalls = PartitionPlan::kMaxBlocks + 64;

// Limits what peers may cost. A worker sends its whole part of the shard, and
// waits for each of its blocks. Before the first call on a new connection has
// arrived, the connection is nobody's.
void LimitPeers(const PartitionPlan& partition, int shard, int workers,
                PeerConnections* connections) {
  int64_t elements = 0;
  for (const Block& block : partition.blocks(shard)) elements += block.size;
  const auto blocks = static_cast<int64_t>(partition.blocks(shard).size());
  const int64_t bytes = elements * static_cast<int64_t>(sizeof(float));
  PeerConnections::Limits limits = connections->limits();
  limits.nobodys = std::max<size_t>(limits.nobodys, 2 * workers);
  limits.bytes = 2 * bytes + kMaxMessageBytes;
  limits.nobodys_bytes = workers * (bytes + (16 << 20)) + (128 << 20);
  limits.calls = limits.arriving = 2 * blocks + 256;
  limits.nobodys_calls = 2 * blocks * workers + 1024;
  connections->SetLimits(limits);
}

}  // namespace

// Wakes the queue's thread regularly, to answer calls past their deadline.
class ParameterServer::Tick final : public CompletionTag {
 public:
  explicit Tick(ParameterServer* server) : server_(server) { Set(); }
  void Proceed(bool ok) override {
    if (!ok || server_->refusing_) return;
    server_->plans_.Tick();
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

ParameterServer::ParameterServer(Options options)
    : options_(std::move(options)),
      side_calls_({v1::ParameterService::service_full_name()}, options_.guard,
                  options_.reflection),
      plans_({.clock = options_.clock,
              .guard = options_.guard,
              .connect =
                  [this](const v1::Plan& plan) {
                    return std::make_unique<GrpcCalls>(
                        std::vector<std::string>(plan.servers().begin(),
                                                 plan.servers().end()),
                        proof_, queue_.get());
                  },
              .post =
                  [this](std::function<void()> work) {
                    RunOnLoop(std::move(work));
                  }}) {}

void ParameterServer::RunOnLoop(std::function<void()> work) {
  posted_.Post(queue_.get(), std::move(work));
}

absl::StatusOr<std::unique_ptr<ParameterServer>> ParameterServer::Start(
    Options options) {
  std::unique_ptr<ParameterServer> server(
      new ParameterServer(std::move(options)));
  TRIBUTARY_RETURN_IF_ERROR(server->Listen());
  return server;
}

absl::Status ParameterServer::Listen() {
  TRIBUTARY_ASSIGN_OR_RETURN(port_,
                             PeerPort::Listen(options_.listen, options_.guard));
  grpc::ServerBuilder builder;
  port_->AddTo(&builder, kMostCalls);
  builder.RegisterService(&service_);
  builder.RegisterAsyncGenericService(side_calls_.service());
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  if (!server_) {
    queue_->Shutdown();
    return absl::InternalError(
        absl::StrCat("cannot serve on ", options_.listen));
  }
  ListenForMemory();
  PostAll();
  side_calls_.Start(queue_.get());
  tick_ = std::make_unique<Tick>(this);
  thread_ = std::thread([this] { Loop(); });
  port_->Start();
  return absl::OkStatus();
}

void ParameterServer::ListenForMemory() {
  auto listener = MemoryListener::Start(
      {.directory = options_.memory_directory,
       .any_user = options_.memory_any_user,
       .clock = options_.clock,
       .admit =
           [this](const v1::SharedMemoryHello& hello, const UniqueFd& memory) {
             return plans_.handlers().Admit(hello, memory);
           },
       .on_gone = [this](uint64_t gone) { plans_.handlers().OnGone(gone); }});
  if (!listener.ok()) {
    spdlog::warn("workers of this machine cannot share memory: {}",
                 std::string(listener.status().message()));
    return;
  }
  memory_listener_ = *std::move(listener);
  plans_.handlers().SetMemorySocket(memory_listener_->socket());
}

void ParameterServer::PostAll() {
  const auto post = [this](const char* name, auto request, auto handle) {
    const std::string method =
        absl::StrCat("/", v1::ParameterService::service_full_name(), "/", name);
    for (int i = 0; i < kSlotsPerMethod; ++i) {
      RawCall::Post(
          [this, request](auto* context, auto* bytes, auto* writer, void* tag) {
            (service_.*request)(context, bytes, writer, queue_.get(),
                                queue_.get(), tag);
          },
          [this, method, handle](RawCall* call) {
            if (refusing_) {
              return call->Fail(
                  absl::UnavailableError("this server is shutting down"));
            }
            auto caller = options_.guard->Admit(call->context(), method,
                                                call->request_bytes());
            if (!caller.ok())
              return plans_.handlers().Refuse(call, caller.status());
            call->SetCaller(*std::move(caller));
            (plans_.handlers().*handle)(call);
          });
    }
  };
  using Service = RawParameterService;
  post("PushPull", &Service::RequestPushPull, &ParameterHandlers::PushPull);
  post("Pull", &Service::RequestPull, &ParameterHandlers::Pull);
  post("ReadClock", &Service::RequestReadClock, &ParameterHandlers::ReadClock);
  post("Initialize", &Service::RequestInitialize,
       &ParameterHandlers::Initialize);
  post("ReadStatistics", &Service::RequestReadStatistics,
       &ParameterHandlers::ReadStatistics);
  post("GetServerStatus", &Service::RequestGetServerStatus,
       &ParameterHandlers::GetServerStatus);
}

void ParameterServer::Loop() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    static_cast<CompletionTag*>(tag)->Proceed(ok && !draining_);
  }
}

absl::Status ParameterServer::Serve(const v1::Plan& plan,
                                    PartitionPlan partition, ShardSetup setup,
                                    const Restore& restore) {
  if (setup.shard >= 0 && setup.shard < partition.num_shards()) {
    LimitPeers(partition, setup.shard, plan.num_workers(),
               options_.guard->connections().get());
  }
  return plans_.Serve(plan, std::move(partition), std::move(setup), restore);
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
    plans_.EndCalls();
  });
  port_->Stop();
  // Answers that have been started still arrive.
  server_->Shutdown(DeadlineAfter(kLastAnswers));
  RunOnLoop([this] {
    draining_ = true;
    side_calls_.Drain();
    tick_->Cancel();
    plans_.CancelCalls();
    queue_->Shutdown();
  });
  thread_.join();
  memory_listener_.reset();
}

ParameterServer::~ParameterServer() { Shutdown(); }

}  // namespace tributary
