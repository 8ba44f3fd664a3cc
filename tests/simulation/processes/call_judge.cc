// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/processes/call_judge.h"

#include <optional>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/wire/header_checksum.h"
#include "common/wire/tensor_frame.h"

namespace tributary::simulation {
namespace {

constexpr char kPushPull[] = "/tributary.v1.ParameterService/PushPull";
constexpr char kPull[] = "/tributary.v1.ParameterService/Pull";
constexpr char kReadClock[] = "/tributary.v1.ParameterService/ReadClock";

// The message as its sender has made it.
template <typename Message>
Message Decoded(const grpc::ByteBuffer& frame, Payload* payload = nullptr) {
  Message message;
  Payload none;
  TRIBUTARY_CHECK(DecodeFrame(frame, &message, payload ? payload : &none).ok());
  return message;
}

template <typename Request>
DataCall CallOf(const char* method, Request request,
                std::vector<grpc::Slice> payload) {
  SignHeader(&request);
  const grpc::ByteBuffer frame = EncodeFrame(request, std::move(payload));
  return {method, request.rank(), frame, frame};
}

}  // namespace

CallJudge::CallJudge(Context* context, ServedPlanPtr served)
    : context_(context), served_(std::move(served)) {
  const v1::Plan& plan = served_->plan();
  testing::ContributionLedger::Options options;
  options.workers = context->scenario.workers;
  options.steps = plan.start_step();
  options.may_skip = context->scenario.backup_workers > 0;
  testing::ContributionLedger ledger(options);
  for (int rank = 0; rank < plan.incarnations_size(); ++rank) {
    ledger.Fence(static_cast<uint32_t>(rank), plan.incarnations(rank));
  }
  for (size_t b = served_->partition().blocks(served_->shard()).size(); b > 0;
       --b) {
    ledgers_.push_back(ledger);
  }
}

void CallJudge::Judge(const absl::Status& status,
                      const v1::BlockAddress& address) {
  if (status.ok()) return;
  context_->world.Violate(absl::StrCat("shard ", address.shard(), ", block ",
                                       address.block(), ": ",
                                       std::string(status.message())));
}

void CallJudge::JudgePlan(const v1::BlockAddress& address) {
  const v1::Plan& plan = served_->plan();
  if (address.job_id() == plan.job_id() &&
      address.plan_epoch() == plan.epoch()) {
    return;
  }
  Judge(absl::InternalError(absl::StrCat("a call of job ", address.job_id(),
                                         ", plan epoch ", address.plan_epoch(),
                                         " counts in job ", plan.job_id(),
                                         ", plan epoch ", plan.epoch())),
        address);
}

template <typename Response>
void CallJudge::SeeWeights(const v1::BlockAddress& address,
                           const std::optional<Reader>& reader,
                           const absl::StatusOr<grpc::ByteBuffer>& answer,
                           Response* response) {
  if (!answer.ok()) {
    if (absl::IsDeadlineExceeded(answer.status()) &&
        absl::EndsWith(answer.status().message(), " ")) {
      Judge(absl::InternalError(
                absl::StrCat("a wait does not say for whom: ",
                             std::string(answer.status().message()))),
            address);
    }
    return;
  }
  JudgePlan(address);
  Payload payload;
  *response = Decoded<Response>(*answer, &payload);
  const Block& block =
      served_->partition().blocks(served_->shard())[address.block()];
  std::vector<float> weights(static_cast<size_t>(block.size));
  TRIBUTARY_CHECK(payload.size() == weights.size() * sizeof(float));
  payload.CopyTo(weights.data());
  context_->oracle.Shown(block, response->version(), weights.data(), reader);
  context_->world.Mix(response->crc32c());
  const auto [seen, is_new] = shown_.try_emplace(
      {address.block(), response->version()}, response->crc32c());
  if (!is_new && seen->second != response->crc32c()) {
    Judge(absl::InternalError(
              absl::StrCat("version ", response->version(), " has changed")),
          address);
  }
}

CallJudge::See CallJudge::WatchPush(const v1::PushPullRequest& request) {
  return [self = shared_from_this(), address = request.address(),
          reader = Reader{request.rank(), request.step() + 1}](
             const absl::StatusOr<grpc::ByteBuffer>& answer) {
    v1::PushPullResponse response;
    self->SeeWeights(address, reader, answer, &response);
    if (answer.ok() && self->context_->scenario.sync == Scenario::Sync::kBulk &&
        response.version() != reader.finished) {
      self->Judge(absl::InternalError(absl::StrCat(
                      "rank ", reader.rank, " gets version ",
                      response.version(), " for step ", reader.finished)),
                  address);
    }
  };
}

CallJudge::See CallJudge::WatchPull(const v1::PullRequest& request,
                                    std::optional<uint32_t> rank) {
  std::optional<Reader> reader;
  if (rank && request.has_finished_steps()) {
    reader = Reader{*rank, request.finished_steps()};
  }
  return [self = shared_from_this(), request,
          reader](const absl::StatusOr<grpc::ByteBuffer>& answer) {
    v1::PullResponse response;
    self->SeeWeights(request.address(), reader, answer, &response);
    if (answer.ok() && request.exact() &&
        response.version() != request.min_version()) {
      self->Judge(absl::InternalError(absl::StrCat(
                      "version ", request.min_version(), " was asked for, ",
                      response.version(), " is answered")),
                  request.address());
    }
  };
}

CallJudge::See CallJudge::WatchClock(const v1::ClockRequest& request) {
  return [self = shared_from_this(),
          request](const absl::StatusOr<grpc::ByteBuffer>& answer) {
    if (!answer.ok()) return;
    self->JudgePlan(request.address());
    const uint64_t holder =
        self->served_->plan().incarnations(static_cast<int>(request.rank()));
    if (request.incarnation() < holder) {
      self->Judge(
          absl::InternalError(absl::StrCat(
              "rank ", request.rank(), " is answered as incarnation ",
              request.incarnation(), ", which lost it before this plan")),
          request.address());
    }
    for (testing::ContributionLedger& ledger : self->ledgers_) {
      ledger.Fence(request.rank(), request.incarnation());
      if (request.recomputes() && self->context_->scenario.gathers()) {
        ledger.MayComeAgain(request.rank(), request.incarnation());
      }
    }
  };
}

CallJudge::See CallJudge::Watch(const DataCall& call) {
  const std::string_view method = call.method;
  if (method == kPushPull) {
    return WatchPush(Decoded<v1::PushPullRequest>(call.sent));
  }
  if (method == kPull) {
    return WatchPull(Decoded<v1::PullRequest>(call.sent), call.rank);
  }
  if (method == kReadClock) {
    return WatchClock(Decoded<v1::ClockRequest>(call.sent));
  }
  return [](const absl::StatusOr<grpc::ByteBuffer>&) {};
}

void CallJudge::Take(const DataCall& call, const Handle& handle) {
  const ShardCounters& counters = served_->store().counters();
  const uint64_t counted = counters.contributions;
  const uint64_t repeated = counters.duplicates;
  handle();
  if (counters.contributions == counted && counters.duplicates == repeated) {
    return;
  }
  const auto push = Decoded<v1::PushPullRequest>(call.sent);
  const v1::BlockAddress& address = push.address();
  testing::ContributionLedger& ledger = ledgers_[address.block()];
  if (counters.contributions > counted) {
    JudgePlan(address);
    Judge(ledger.Counted(push.rank(), push.incarnation(), push.step()),
          address);
  }
  if (counters.duplicates > repeated) {
    Judge(ledger.Repeated(push.rank(), push.incarnation(), push.step()),
          address);
    ++context_->network.faults()["contribution repeated"];
  }
}

std::vector<DataCall> CallsOfFormerHolders(const ServedPlan& served) {
  std::vector<DataCall> calls;
  const v1::Plan& plan = served.plan();
  const auto& blocks = served.partition().blocks(served.shard());
  if (blocks.empty()) return calls;
  v1::BlockAddress address;
  address.set_job_id(plan.job_id());
  address.set_plan_epoch(plan.epoch());
  address.set_shard(static_cast<uint32_t>(served.shard()));
  const std::vector<float> gradient(static_cast<size_t>(blocks[0].size), 1.0f);
  const grpc::Slice bytes(gradient.data(), gradient.size() * sizeof(float));
  for (int rank = 0; rank < plan.incarnations_size(); ++rank) {
    if (plan.incarnations(rank) < 2) continue;
    v1::ClockRequest clock;
    *clock.mutable_address() = address;
    clock.set_rank(static_cast<uint32_t>(rank));
    clock.set_incarnation(plan.incarnations(rank) - 1);
    calls.push_back(CallOf(kReadClock, clock, {}));
    v1::PushPullRequest push;
    *push.mutable_address() = address;
    push.set_rank(clock.rank());
    push.set_incarnation(clock.incarnation());
    push.set_step(plan.start_step());
    push.set_samples(1);
    push.set_crc32c(
        Payload::Copy(bytes.begin(), bytes.size()).ScanFloats().crc32c);
    calls.push_back(CallOf(kPushPull, push, {bytes}));
  }
  return calls;
}

}  // namespace tributary::simulation
