// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/processes/simulated_server.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/checkpoint/restore.h"
#include "common/job/job_options.h"
#include "common/member/report_checkpoint.h"
#include "common/status/status_macros.h"
#include "server/service/make_training.h"
#include "server/service/parameter_handlers.h"
#include "tests/simulation/processes/checkpoint_files.h"
#include "tests/simulation/world/micros.h"

namespace tributary::simulation {
namespace {

std::vector<std::string> StatesOf(const Scenario& scenario) {
  return ServerStatesOf(scenario.optimizer, scenario.delay);
}

// The value of ParameterServer.
constexpr int64_t kTick = 100 * kMilli;

}  // namespace

// A call that has no answer yet.
class SimulatedServer::TakenCall final : public ServedCall {
 public:
  TakenCall(SimulatedServer* server, int64_t number, const DataCall& call,
            CallJudge::See see, Reply<grpc::ByteBuffer> reply)
      : server_(server),
        number_(number),
        request_(call.request),
        see_(std::move(see)),
        reply_(std::move(reply)) {
    Caller caller;
    caller.unchecked = true;
    SetCaller(std::move(caller));
  }

  grpc::ByteBuffer TakeRequest() override { return std::move(request_); }
  void Answer(const grpc::ByteBuffer& response) override { End(response); }
  void Fail(const absl::Status& status) override { End(status); }
  std::string peer() const override { return "simulated"; }

 private:
  void End(const absl::StatusOr<grpc::ByteBuffer>& answer) {
    if (see_) see_(answer);
    reply_(answer);
    server_->calls_.erase(number_);
  }

  SimulatedServer* const server_;
  const int64_t number_;
  grpc::ByteBuffer request_;
  const CallJudge::See see_;
  const Reply<grpc::ByteBuffer> reply_;
};

SimulatedServer::SimulatedServer(int64_t pid, std::string name,
                                 Context* context, Options options)
    : DataServer(pid, std::move(name)),
      context_(context),
      options_(std::move(options)),
      host_(context, this),
      tags_(std::make_shared<TagQueue>([this] {
        After(0, World::Kind::kWork, [this] { tags_->Handle(); });
      })) {
  plans_.emplace(ServiceOptions());
}

SimulatedServer::~SimulatedServer() = default;

PlanService::Options SimulatedServer::ServiceOptions() {
  return {.clock = context_->world.clock(),
          .guard = CallGuard::Open(),
          .connect =
              [this](const v1::Plan& plan) {
                // Until the plan is served, calls are refused.
                context_->fibers.Sleep(
                    context_->world.random().Scale(kMilli, 30 * kMilli),
                    World::Kind::kWork);
                return std::make_unique<SimulatedCalls>(
                    context_, this, /*rank=*/std::nullopt, plan, tags_);
              },
          .post = [](const std::function<void()>& work) { work(); }};
}

void SimulatedServer::Start() {
  context_->network.Listen(options_.address, this);
  context_->fibers.Start(this, [this] { context_->on_exit(this, Live()); });
  Tick();
}

void SimulatedServer::LetGo() {
  context_->fibers.Kill(this);
  plans_->CancelCalls();
  while (!tags_->empty()) tags_->Handle();
  checkpointer_.reset();
  judge_.reset();
  plans_.reset();
  calls_.clear();
}

void SimulatedServer::After(int64_t micros, World::Kind kind,
                            std::function<void()> then) {
  context_->world.After(micros, this, kind, std::move(then));
}

uint64_t SimulatedServer::serving_epoch() const {
  const auto plan = served();
  return plan ? plan->plan().epoch() : 0;
}

int64_t SimulatedServer::LeastVersion() const {
  const auto plan = served();
  if (!plan) return 0;
  return plan->partition().blocks(plan->shard()).empty()
             ? INT64_MAX
             : plan->store().MinVersion();
}

std::string SimulatedServer::Held(bool calls_count) const {
  const auto plan = served();
  if (!plan) return "";
  const ParameterShard& store = plan->store();
  if (store.held_bytes() == 0 && (!calls_count || store.waiting_calls() == 0)) {
    return "";
  }
  return absl::StrCat(name(), " holds ", store.held_bytes(), " bytes and ",
                      store.waiting_calls(), " calls");
}

void SimulatedServer::Tick() {
  After(kTick, World::Kind::kIdle, [this] {
    plans_->Tick();
    Tick();
  });
}

absl::StatusOr<std::unique_ptr<Member>> SimulatedServer::Join() {
  MemberOptions options = host_.Options(v1::ROLE_SERVER);
  options.address = options_.address;
  options.wanted_index = options_.wanted_index;
  return Member::Join(std::move(options));
}

absl::Status SimulatedServer::Live() {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<Member> member, Join());
  const absl::Cleanup gone = [this] { member_ = nullptr; };
  member_ = member.get();
  index_ = member->index();
  TRIBUTARY_TRACE(context_->world, name(), " (pid ", pid(), ") has place ",
                  *index_, " as incarnation ", member->incarnation());
  const absl::Status status = ServeUntilEnd(*member, *this);
  checkpointer_.reset();
  return status;
}

// ---- plans

absl::Status SimulatedServer::CutAll(int64_t step, bool best) {
  const absl::Status cut = plans_->CutAll(step);
  if (!cut.ok()) {
    context_->world.Violate(absl::StrCat(
        name(), " has no snapshot of the last step: ", cut.message()));
  }
  if (cut.ok() && best && checkpointer_) checkpointer_->SetBest(step);
  return cut;
}

absl::StatusOr<std::optional<WholeState>> SimulatedServer::Restored(
    const v1::Plan& plan) {
  const PartitionPlan partition = context_->model.Cut(plan.servers_size());
  if (plan.restore_from().empty() ||
      partition.blocks(static_cast<int>(*index_)).empty()) {
    return std::nullopt;
  }
  absl::StatusOr<WholeState> whole =
      context_->disk.Read(plan.restore_from(), context_->model.parameters(),
                          StatesOf(context_->scenario).size());
  if (!whole.ok()) {  // the next plan starts from another checkpoint
    if (!context_->disk.damaged()) {
      context_->world.Violate(
          absl::StrCat("a checkpoint that nobody has damaged cannot be read: ",
                       std::string(whole.status().message())));
    }
    return Unreadable(whole.status());
  }
  context_->oracle.Checkpoint(*whole);
  return *std::move(whole);
}

absl::Status SimulatedServer::Start(const v1::Plan& plan) {
  if (checkpointer_) checkpointer_->Finish();
  TRIBUTARY_ASSIGN_OR_RETURN(const std::optional<WholeState> restored,
                             Restored(plan));
  PartitionPlan partition = context_->model.Cut(plan.servers_size());
  ShardSetup setup = MakeSetup(plan, partition);
  PlanService::Restore restore;
  if (restored) {
    restore.load_block = [&restored](const Block& block, float* weights,
                                     const std::vector<float*>& state) {
      restored->CopyOut(block, weights, state);
      return absl::OkStatus();
    };
    restore.skipped_steps = restored->skipped_steps;
  }
  const std::shared_ptr<ServedPlan> ended = served();
  const absl::Status status =
      plans_->Serve(plan, std::move(partition), std::move(setup), restore);
  if (!status.ok()) {
    context_->world.Violate(absl::StrCat(
        name(), " refuses a plan: ", std::string(status.message())));
    return status;
  }
  if (ended && ended->store().waiting_calls() > 0) {
    context_->world.Violate("calls wait in a plan that is over");
  }
  judge_ = std::make_shared<CallJudge>(context_, served());
  for (const DataCall& call : CallsOfFormerHolders(*served())) {
    ++context_->network.faults()["former holder called"];
    Take(call, [](const absl::StatusOr<grpc::ByteBuffer>&) {});
  }
  TRIBUTARY_TRACE(context_->world, name(), " serves shard ", *index_,
                  " of plan epoch ", plan.epoch(), " after step ",
                  plan.start_step());
  return absl::OkStatus();
}

ShardSetup SimulatedServer::MakeSetup(const v1::Plan& plan,
                                      const PartitionPlan& partition) {
  const Scenario& scenario = context_->scenario;
  absl::StatusOr<ShardTraining> training =
      MakeTraining(JobOf(scenario), plan.total_steps());
  TRIBUTARY_CHECK(training.ok());
  ShardSetup setup;
  setup.shard = static_cast<int>(*index_);
  setup.training = *std::move(training);
  setup.training.optimizer = scenario.optimizer;
  if (scenario.adds_early) setup.training.summation.group = 1;
  setup.training.learning_rate = [model = &context_->model](int64_t step) {
    return model->LearningRate(step);
  };
  setup.ops = &context_->ops;
  setup.on_fatal = [this](const absl::Status& why) {
    context_->world.Violate(std::string(why.message()));
  };
  PrepareCheckpoints(plan, partition, &setup);
  return setup;
}

// Does what a server's program does.
void SimulatedServer::PrepareCheckpoints(const v1::Plan& plan,
                                         const PartitionPlan& partition,
                                         ShardSetup* setup) {
  checkpointer_.reset();
  Checkpointer::Options options;
  options.num_blocks = partition.blocks(setup->shard).size();
  if (options.num_blocks == 0) return;
  options.series =
      SeriesOf(plan, partition, setup->shard, StatesOf(context_->scenario));
  options.clock = context_->world.clock();
  options.write = WriterOf(context_);
  options.on_written = [this, names = options.series.state_names,
                        epoch = plan.epoch()](const WrittenSnapshot& written) {
    ReportCheckpoint(written, names, epoch, member_);
  };
  checkpointer_ = std::make_shared<Checkpointer>(std::move(options));
  setup->on_checkpoint = [this, keep = checkpointer_](const BlockCut& cut) {
    context_->oracle.Cut(cut);
    keep->Take(cut);
  };
}

// ---- calls

void SimulatedServer::Handle(const std::string& method, ServedCall* call) {
  using Handlers = ParameterHandlers;
  static const auto* const kMethods =
      new std::map<std::string, void (Handlers::*)(ServedCall*)>{
          {"PushPull", &Handlers::PushPull},
          {"Pull", &Handlers::Pull},
          {"ReadClock", &Handlers::ReadClock},
          {"Initialize", &Handlers::Initialize},
          {"ReadStatistics", &Handlers::ReadStatistics}};
  const std::string name = method.substr(method.rfind('/') + 1);
  (plans_->handlers().*kMethods->at(name))(call);
}

void SimulatedServer::Take(const DataCall& call,
                           Reply<grpc::ByteBuffer> reply) {
  const auto judge = judge_ && judge_->served() == served() ? judge_ : nullptr;
  const int64_t number = ++last_call_;
  const auto& taken = calls_[number] = std::make_unique<TakenCall>(
      this, number, call, judge ? judge->Watch(call) : nullptr,
      std::move(reply));
  const auto handle = [this, &call, served = taken.get()] {
    Handle(call.method, served);
  };
  judge ? judge->Take(call, handle) : handle();
}

}  // namespace tributary::simulation
