// The handlers of ParameterServer: decode, validate, hand on.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/failpoint.h"
#include "common/wire/header_checksum.h"
#include "common/wire/tensor_frame.h"
#include "server/service/block_address.h"
#include "server/service/parameter_server.h"
#include "server/service/server_metrics.h"
#include "server/store/rejection.h"

namespace tributary {
namespace {

constexpr uint32_t kMaxWaitMs = 60'000;
constexpr int64_t kMicrosPerMilli = 1000;

template <typename Request>
absl::Status Decode(RawCall* call, Request* request, Payload* payload) {
  const absl::Status status =
      DecodeFrame(call->TakeRequest(), request, payload);
  // The bytes were damaged in transit: DataLoss makes the sender repeat the
  // call.
  if (!status.ok()) {
    return Reject(Rejection::kMalformed, absl::DataLossError(status.message()));
  }
  if constexpr (requires { request->header_crc32c(); }) {
    if (absl::Status header = CheckHeader(*request); !header.ok()) {
      return Reject(Rejection::kChecksum, std::move(header));
    }
  }
  return absl::OkStatus();
}

}  // namespace

int64_t ParameterServer::Deadline(uint32_t wait_ms) const {
  return options_.clock->NowMicros() +
         kMicrosPerMilli * std::min(wait_ms, kMaxWaitMs);
}

absl::Status ParameterServer::CheckAddress(const Serving* serving,
                                           const v1::BlockAddress& address) {
  if (serving == nullptr) return CheckBlockAddress(nullptr, 0, 0, address);
  return CheckBlockAddress(&serving->plan, serving->shard,
                           serving->partition.blocks(serving->shard).size(),
                           address);
}

void ParameterServer::Fail(RawCall* call, const absl::Status& status) {
  rejections_.Count(status);
  call->Fail(status);
}

template <typename Response>
WeightsDone ParameterServer::AnswerWeights(RawCall* call) {
  return [this, call](absl::StatusOr<WeightsSnapshot> weights) {
    if (!weights.ok()) return Fail(call, weights.status());
    const std::string peer = call->peer();
    if (!unread_->Admits(peer)) {
      return Fail(call, Reject(Rejection::kOverload,
                               absl::ResourceExhaustedError(absl::StrCat(
                                   peer,
                                   " does not read what it is sent; "
                                   "read it, then try again"))));
    }
    if constexpr (std::is_same_v<Response, v1::PushPullResponse>) {
      TRIBUTARY_FAILPOINT("server-answer");
    }
    Response response;
    response.set_version(weights->version);
    response.set_crc32c(weights->crc32c);
    SignHeader(&response);
    const size_t bytes = weights->num_elements * sizeof(float);
    bytes_sent_ += bytes;
    call->Answer(EncodeFrame(
        response, {unread_->Send(peer, std::move(weights->weights), bytes)}));
  };
}

void ParameterServer::HandlePushPull(RawCall* call) {
  v1::PushPullRequest request;
  Payload payload;
  absl::Status status = Decode(call, &request, &payload);
  const std::shared_ptr<Serving> serving = this->serving();
  if (status.ok()) status = CheckAddress(serving.get(), request.address());
  if (!status.ok()) return Fail(call, status);
  bytes_received_ += payload.size();
  Contribution contribution;
  contribution.rank = request.rank();
  contribution.incarnation = request.incarnation();
  contribution.step = request.step();
  contribution.samples = request.samples();
  contribution.crc32c = request.crc32c();
  contribution.base_version = request.base_version();
  contribution.payload = std::move(payload);
  TRIBUTARY_FAILPOINT("server-received");
  serving->store->PushPull(static_cast<int>(request.address().block()),
                           std::move(contribution), Deadline(request.wait_ms()),
                           AnswerWeights<v1::PushPullResponse>(call));
}

void ParameterServer::HandlePull(RawCall* call) {
  v1::PullRequest request;
  Payload none;
  absl::Status status = Decode(call, &request, &none);
  const std::shared_ptr<Serving> serving = this->serving();
  if (status.ok()) status = CheckAddress(serving.get(), request.address());
  if (!status.ok()) return Fail(call, status);
  ParameterShard& store = *serving->store;
  const auto block = static_cast<int>(request.address().block());
  const int64_t version = std::max<int64_t>(request.min_version(), 0);
  const int64_t deadline = Deadline(request.wait_ms());
  WeightsDone done = AnswerWeights<v1::PullResponse>(call);
  if (request.has_finished_steps()) {
    store.PullFinished(block, request.finished_steps(), deadline,
                       std::move(done));
  } else if (request.exact()) {
    store.PullExact(block, version, deadline, std::move(done));
  } else {
    store.Pull(block, version, deadline, std::move(done));
  }
}

void ParameterServer::HandleReadClock(RawCall* call) {
  v1::ClockRequest request;
  Payload none;
  absl::Status status = Decode(call, &request, &none);
  const std::shared_ptr<Serving> serving = this->serving();
  if (status.ok()) status = CheckAddress(serving.get(), request.address());
  if (status.ok() &&
      request.rank() >= static_cast<uint32_t>(serving->plan.num_workers())) {
    status =
        Reject(Rejection::kRank, absl::InvalidArgumentError(absl::StrCat(
                                     "rank ", request.rank(), ", wanted below ",
                                     serving->plan.num_workers())));
  }
  if (!status.ok()) return Fail(call, status);
  const absl::StatusOr<ParameterShard::Clock> clock =
      serving->store->ReadClock(static_cast<int>(request.rank()),
                                request.incarnation(), request.recomputes());
  if (!clock.ok()) return Fail(call, clock.status());
  v1::ClockResponse response;
  response.set_initialized(clock->initialized);
  response.set_steps(clock->steps);
  response.set_begun(clock->begun);
  SignHeader(&response);
  call->Answer(EncodeFrame(response, {}));
}

void ParameterServer::HandleInitialize(RawCall* call) {
  v1::InitializeRequest request;
  Payload payload;
  absl::Status status = Decode(call, &request, &payload);
  const std::shared_ptr<Serving> serving = this->serving();
  if (status.ok()) status = CheckAddress(serving.get(), request.address());
  if (status.ok()) {
    bytes_received_ += payload.size();
    status = serving->store->Initialize(
        static_cast<int>(request.address().block()), request.crc32c(), payload);
  }
  if (!status.ok()) return Fail(call, status);
  call->Answer(EncodeFrame(v1::InitializeResponse(), {}));
}

void ParameterServer::HandleReadStatistics(RawCall* call) {
  v1::StatisticsRequest request;
  Payload none;
  absl::Status status = Decode(call, &request, &none);
  const std::shared_ptr<Serving> serving = this->serving();
  if (status.ok()) {
    v1::BlockAddress address;  // without a block: sums are per shard
    address.set_job_id(request.job_id());
    address.set_plan_epoch(request.plan_epoch());
    address.set_shard(request.shard());
    status = CheckAddress(serving.get(), address);
  }
  if (status.ok() && request.phase() != v1::GRADIENT_NORM &&
      request.phase() != v1::TRUST_RATIO) {
    status =
        Reject(Rejection::kAddress,
               absl::InvalidArgumentError(absl::StrCat(
                   "statistics phase ", request.phase(), ", wanted 1 or 2")));
  }
  if (!status.ok()) return Fail(call, status);
  serving->store->ReadStatistics(
      request.step(),
      request.phase() == v1::TRUST_RATIO ? StatisticsKind::kTrustRatio
                                         : StatisticsKind::kGradientNorm,
      Deadline(request.wait_ms()),
      [this, call](absl::StatusOr<std::vector<double>> values) {
        if (!values.ok()) return Fail(call, values.status());
        v1::StatisticsResponse response;
        response.mutable_values()->Add(values->begin(), values->end());
        SignHeader(&response);
        call->Answer(EncodeFrame(response, {}));
      });
}

void ParameterServer::HandleGetServerStatus(RawCall* call) {
  v1::ServerStatusRequest request;
  Payload none;
  if (absl::Status status = Decode(call, &request, &none); !status.ok()) {
    return Fail(call, status);
  }
  call->Answer(EncodeFrame(GetStatus(), {}));
}

v1::ServerStatusResponse ParameterServer::GetStatus() const {
  v1::ServerStatusResponse response;
  response.set_bytes_received(bytes_received_);
  response.set_bytes_sent(bytes_sent_);
  for (int i = 0; i < kNumRejections; ++i) {
    const auto reason = static_cast<Rejection>(i);
    (*response.mutable_rejections())[RejectionName(reason)] =
        rejections_.of(reason);
  }
  const std::shared_ptr<Serving> serving = this->serving();
  if (!serving) return response;
  const ParameterShard& store = *serving->store;
  response.set_shard(serving->shard);
  response.set_plan_epoch(serving->plan.epoch());
  response.set_min_version(store.MinVersion());
  response.set_max_version(store.MaxVersion());
  for (int rank : store.MissingRanks()) response.add_waiting_for_ranks(rank);
  response.set_contributions(store.counters().contributions);
  response.set_duplicates(store.counters().duplicates);
  response.set_conflicts(store.counters().conflicts);
  response.set_rejected(store.counters().rejected);
  response.set_dropped(store.counters().dropped);
  response.set_nonfinite(store.counters().nonfinite);
  response.set_skipped_blocks(store.counters().skipped_blocks);
  response.set_max_staleness(store.counters().max_staleness);
  for (const auto& pulls : store.counters().staleness) {
    response.add_staleness(pulls);
  }
  response.set_waiting_calls(store.waiting_calls());
  response.set_held_bytes(store.held_bytes());
  response.set_staleness_sum(store.counters().staleness_sum);
  response.set_optimizer_seconds(
      1e-6 * static_cast<double>(store.counters().update_micros));
  if (const std::optional<int64_t> bound = store.staleness_bound()) {
    response.set_staleness_bound(*bound);
  }
  return response;
}

void ParameterServer::WriteMetrics(MetricsWriter* writer) const {
  const std::shared_ptr<Serving> serving = this->serving();
  if (serving) WriteServerMetrics(GetStatus(), serving->waits, writer);
}

}  // namespace tributary
