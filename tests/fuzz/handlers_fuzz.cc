// SPDX-License-Identifier: Apache-2.0
// The services of a server and a coordinator below gRPC, fed with damaged
// messages of a living job: a list of calls, each a kind, its length and a
// protobuf message. No message ends a process, every call is answered once.
#include <google/protobuf/message.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/plan/partition_plan.h"
#include "common/wire/crc32c/crc32c.h"
#include "common/wire/header_checksum.h"
#include "common/wire/tensor_frame.h"
#include "coordinator/core/state_file.h"
#include "coordinator/service/job_control.h"
#include "kernels/ops.h"
#include "server/service/block_address.h"
#include "server/store/parameter_shard.h"
#include "spdlog/spdlog.h"
#include "tests/fuzz/fuzz.h"
#include "tributary/v1/parameter_service.pb.h"

namespace tributary::fuzz {
namespace {

constexpr int kWorkers = 2;
constexpr uint64_t kJob = 77;
constexpr int64_t kSecond = 1'000'000;

ParameterSpecs Parameters() {
  return {{.name = "0.weight", .shape = {2, 3}},
          {.name = "0.bias", .shape = {2}}};
}

grpc::ByteBuffer Buffer(absl::string_view bytes) {
  const grpc::Slice slice(bytes.data(), bytes.size());
  return grpc::ByteBuffer(&slice, 1);
}

std::unique_ptr<SyncPolicy> PolicyOf(int choice) {
  switch (choice % 4) {
    case 0:
      return std::make_unique<BulkSynchronous>();
    case 1:
      return std::make_unique<BulkSynchronous>(/*backup_workers=*/1);
    case 2:
      return std::make_unique<StaleSynchronous>(
          1, [](int64_t finished) { return finished % 4 == 0; });
    default:
      return std::make_unique<Asynchronous>();
  }
}

// A shard and its service's checks, as parameter_handlers.cc calls them.
class Server {
 public:
  explicit Server(uint8_t choice)
      : ops_(CreateCpuOps()),
        cut_(PartitionPlan::Create(Parameters(), choice & 4 ? 2 : 1,
                                   /*bucket_bytes=*/1024,
                                   /*min_block_elements=*/1)
                 .value()) {
    plan_.set_job_id(kJob);
    plan_.set_epoch(1);
    plan_.set_num_workers(kWorkers);
    ParameterShard::Options options;
    options.plan = &cut_;
    options.num_workers = kWorkers;
    options.training.optimizer.kind = choice & 8 ? "lamb" : "sgd";
    options.training.learning_rate = [](int64_t) { return 0.1; };
    options.training.clip_norm = choice & 16 ? 1.0 : 0.0;
    options.training.policy = PolicyOf(choice);
    options.ops = ops_.get();
    options.training.kept_versions = 1;
    options.training.nonfinite =
        choice & 32 && options.training.policy->gathers()
            ? NonFiniteAction::kSkip
            : NonFiniteAction::kReject;
    options.clock = &clock_;
    options.training.checkpoint_every_steps =
        options.training.clip_norm > 0 ? 2 : 0;
    options.callbacks.on_checkpoint = [](const BlockCut& cut) {
      Expect(cut.steps > 0, "a cut is of a step");
    };
    options.callbacks.fetch_statistics = [](int64_t, StatisticsKind) {};
    shard_ = std::make_unique<ParameterShard>(std::move(options));
  }
  ~Server() {
    shard_->ExpireWaiters(INT64_MAX);
    Expect(shard_->waiting_calls() == 0, "nobody waits beyond the deadline");
    Expect(open_ == 0, "every call is answered");
  }

  void PushPull(absl::string_view bytes, bool repair) {
    v1::PushPullRequest request;
    Payload payload;
    if (!Decode(bytes, &request, &payload) || !Fits(request.address())) return;
    Contribution contribution;
    contribution.rank = request.rank();
    contribution.incarnation = request.incarnation();
    contribution.step = request.step();
    contribution.samples = request.samples();
    contribution.base_version = request.base_version();
    contribution.learning_rates = {request.learning_rates().begin(),
                                   request.learning_rates().end()};
    contribution.crc32c =
        repair ? payload.ScanFloats().crc32c : request.crc32c();
    contribution.payload = std::move(payload);
    shard_->PushPull(static_cast<int>(request.address().block()),
                     std::move(contribution), Deadline(), Answer());
  }
  void Pull(absl::string_view bytes) {
    v1::PullRequest request;
    Payload none;
    if (!Decode(bytes, &request, &none) || !Fits(request.address())) return;
    const auto block = static_cast<int>(request.address().block());
    const int64_t version = std::max<int64_t>(request.min_version(), 0);
    if (request.has_finished_steps()) {
      shard_->PullFinished(block, request.finished_steps(), Deadline(),
                           Answer());
    } else if (request.exact()) {
      shard_->PullExact(block, version, Deadline(), Answer());
    } else {
      shard_->Pull(block, version, Deadline(), Answer());
    }
  }
  void ReadClock(absl::string_view bytes) {
    v1::ClockRequest request;
    Payload none;
    if (!Decode(bytes, &request, &none) || !Fits(request.address())) return;
    if (request.rank() >= kWorkers) return;  // as the handler checks
    const auto clock =
        shard_->ReadClock(static_cast<int>(request.rank()),
                          request.incarnation(), request.recomputes());
    if (clock.ok())
      Expect(clock->steps <= clock->begun, "steps are begun first");
  }
  void Initialize(absl::string_view bytes, bool repair) {
    v1::InitializeRequest request;
    Payload payload;
    if (!Decode(bytes, &request, &payload) || !Fits(request.address())) return;
    (void)shard_->Initialize(
        static_cast<int>(request.address().block()),
        repair ? payload.ScanFloats().crc32c : request.crc32c(), payload);
  }
  void ReadStatistics(absl::string_view bytes) {
    v1::StatisticsRequest request;
    Payload none;
    if (!Decode(bytes, &request, &none)) return;
    ++open_;
    shard_->ReadStatistics(request.step(), KindOf(request.phase()), Deadline(),
                           [this](const auto&) { --open_; });
  }
  void AddStatistics(absl::string_view bytes) {
    if (cut_.num_shards() < 2) return;  // nobody to ask
    v1::StatisticsResponse response;
    if (!response.ParseFromArray(bytes.data(),
                                 static_cast<int>(bytes.size()))) {
      return;
    }
    std::vector<double> values(response.payload().size() / sizeof(double));
    std::memcpy(values.data(), response.payload().data(),
                values.size() * sizeof(double));
    const int64_t step = std::max<int64_t>(shard_->MinVersion(), 0);
    for (int kind = 0; kind < kStatisticsKinds; ++kind) {
      (void)shard_->AddStatistics(step, static_cast<StatisticsKind>(kind), 1,
                                  values);
    }
  }
  void Wait() {
    clock_.AdvanceMicros(kSecond);
    shard_->ExpireWaiters(clock_.NowMicros());
    (void)shard_->MissingRanks();
    Expect(shard_->held_bytes() <= kWorkers * 64, "a server holds one step");
  }

 private:
  static StatisticsKind KindOf(v1::StatisticsPhase phase) {
    return phase == v1::TRUST_RATIO ? StatisticsKind::kTrustRatio
           : phase == v1::FACTORS   ? StatisticsKind::kFactors
                                    : StatisticsKind::kGradientNorm;
  }
  static bool Decode(absl::string_view bytes,
                     google::protobuf::Message* request, Payload* payload) {
    return DecodeFrame(Buffer(bytes), request, payload).ok();
  }
  bool Fits(const v1::BlockAddress& address) const {
    const absl::Status status =
        CheckBlockAddress(&plan_, 0, cut_.blocks(0).size(), address);
    Expect(status.ok() || !status.message().empty(), "an error has a sentence");
    return status.ok();
  }
  int64_t Deadline() const { return clock_.NowMicros() + 2 * kSecond; }
  WeightsDone Answer() {
    ++open_;
    return [this, answered = std::make_shared<bool>(false)](
               const absl::StatusOr<WeightsSnapshot>& weights) {
      Expect(!std::exchange(*answered, true), "a call is answered once");
      --open_;
      Expect(weights.ok() || !weights.status().message().empty(),
             "an error has a sentence");
    };
  }

  const std::unique_ptr<Ops> ops_;
  const PartitionPlan cut_;
  v1::Plan plan_;
  ManualClock clock_;
  std::unique_ptr<ParameterShard> shard_;
  int open_ = 0;
};

JobControl::Options ControlOptions(uint8_t choice, const Clock* clock) {
  JobControl::Options options;
  options.clock = clock;
  JobState::Options& state = options.state;
  state.job_id = kJob;
  v1::JobSpec& job = state.job;
  job.set_name("fuzz");
  job.mutable_cluster()->set_servers(choice & 1 ? 0 : 2);
  job.mutable_cluster()->set_workers(kWorkers);
  job.mutable_checkpoint()->set_every_steps(2);
  job.mutable_training()->mutable_optimizer()->mutable_sgd();
  if (choice & 2) {
    job.mutable_training()->mutable_loss()->mutable_bce_with_logits();
  } else {
    job.mutable_training()->mutable_loss()->mutable_mse();
  }
  if (choice & 1) {
    job.mutable_strategy()->mutable_all_reduce();
  } else {
    job.mutable_strategy()
        ->mutable_parameter_server()
        ->mutable_sync()
        ->mutable_bsp();
  }
  job.mutable_cluster()->set_on_worker_loss(choice & 4 ? v1::WORKER_LOSS_SHRINK
                                                       : v1::WORKER_LOSS_WAIT);
  options.save = [](const v1::CoordinatorState& kept) {
    Expect(DecodeState("coordinator.state", EncodeState(kept)).ok(),
           "what a coordinator keeps can be read");
    return absl::OkStatus();
  };
  return options;
}

// The coordinator's cores under their lock, and the work of its threads.
class Control {
 public:
  explicit Control(uint8_t choice) : control_(ControlOptions(choice, &clock_)) {
    control_.AllowStart("/checkpoints");
  }

  void Call(int kind, absl::string_view bytes) {
    switch (kind) {
      case 0:
        return With<v1::RegisterRequest>(bytes, [this](auto* r) {
          return control_.calls().Register(*r).status();
        });
      case 1:
        return With<v1::DeclareModelRequest>(bytes, [this](auto* r) {
          return control_.calls().DeclareModel(*r);
        });
      case 2:
        return With<v1::GetPlanRequest>(bytes, [this](auto* r) {
          r->set_wait_ms(0);
          return control_.calls().GetPlan(*r).status();
        });
      case 3:
        return With<v1::HeartbeatRequest>(bytes, [this](auto* r) {
          return control_.calls().Heartbeat(*r).status();
        });
      case 4:
        return With<v1::ReportEvaluationRequest>(bytes, [this](auto* r) {
          return control_.calls().ReportEvaluation(*r).status();
        });
      case 5:
        return With<v1::ExchangeRequest>(bytes, [this](auto* r) {
          r->set_wait_ms(0);
          return control_.calls().Exchange(*r).status();
        });
      case 7:
        return With<v1::TakeCheckpointRequest>(bytes, [this](auto* r) {
          r->set_wait_ms(0);
          return control_.calls().TakeCheckpoint(*r).status();
        });
      default:
        return With<v1::PutWeightsRequest>(bytes, [this](auto* r) {
          r->set_crc32c(Crc32c(r->payload().data(), r->payload().size()));
          SignHeader(r);
          return control_.calls().Put(*r);
        });
    }
  }
  void GoOn(uint8_t what) {
    clock_.AdvanceMicros(what & 1 ? 11 * kSecond : kSecond / 2);
    control_.Tick(absl::ZeroDuration());
    (void)control_.output().TakeFailedCheckpoints();
    if (const auto pending = control_.output().NextManifest()) {
      control_.output().ManifestWritten(
          *pending, "/checkpoints/step",
          what & 2 ? absl::ResourceExhaustedError("full") : absl::OkStatus());
    }
    (void)control_.WaitForUpdate(absl::ZeroDuration());
    (void)control_.Snapshot().ByteSizeLong();
    (void)control_.Totals();
    (void)control_.output().CheckpointOpen();
    v1::Plan plan;
    int64_t step = 0;
    if (control_.output().ReadyToSave(&plan, &step) && (what & 4)) {
      (void)control_.output().RankWeights(step);
      control_.output().Saved(plan.epoch(), absl::OkStatus());
    }
    if (what & 8) control_.RequestStop();
    if (what & 16) {
      control_.MemberLost(what & 32 ? v1::ROLE_SERVER : v1::ROLE_WORKER,
                          what >> 6, 0, "it is gone");
    }
  }

 private:
  template <typename Request, typename Handler>
  void With(absl::string_view bytes, Handler handler) {
    Request request;
    if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return;
    }
    const absl::Status status = handler(&request);
    Expect(status.ok() || !status.message().empty(), "an error has a sentence");
  }

  ManualClock clock_;
  JobControl control_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spdlog::set_level(spdlog::level::off);
  Input input(data, size);
  const uint8_t choice = input.Byte();
  Server server(choice);
  Control control(input.Byte());
  for (int calls = 0; calls < 200; ++calls) {
    const uint8_t kind = input.Byte();
    const absl::string_view bytes = input.Part();
    if (kind == 0 && bytes.empty()) break;  // also means the end
    const bool repair = kind < 128;
    switch (kind % 16) {
      case 1:
        server.PushPull(bytes, repair);
        break;
      case 2:
        server.Pull(bytes);
        break;
      case 3:
        server.ReadClock(bytes);
        break;
      case 4:
        server.Initialize(bytes, repair);
        break;
      case 5:
        server.ReadStatistics(bytes);
        break;
      case 6:
        server.AddStatistics(bytes);
        break;
      case 7:
        if (bytes.empty()) {
          server.Wait();
        } else {
          control.Call(7, bytes);
        }
        break;
      case 15:
        control.GoOn(bytes.empty() ? 0 : static_cast<uint8_t>(bytes[0]));
        break;
      default:
        control.Call(kind % 16 == 0 ? 3 : kind % 16 - 8, bytes);
    }
  }
  return 0;
}

}  // namespace tributary::fuzz
