// SPDX-License-Identifier: Apache-2.0
#include "server/service/parameter_handlers.h"

#include <algorithm>
#include <random>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/failpoint.h"
#include "common/status/status_macros.h"
#include "common/wire/channel.h"
#include "common/wire/header_checksum.h"
#include "common/wire/tensor_frame.h"
#include "server/service/peer_statistics.h"
#include "server/service/server_metrics.h"

namespace tributary {
namespace {

constexpr uint32_t kMaxWaitMs = 60'000;
constexpr int64_t kMicrosPerMilli = 1000;

template <typename Request>
absl::Status Decode(ServedCall* call, Request* request, Payload* payload) {
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

// Limits of the plan's memory that may be held by answers that peers do not
// read. A worker that reads its answers has one answer per block in transit, or
// two when it repeats a call meanwhile. Together the workers hold at most one
// version each, besides the two that a block keeps.
UnreadAnswers::Limits LimitsFor(const ServedPlan& served) {
  const uint64_t shard_bytes =
      sizeof(float) *
      static_cast<uint64_t>(served.partition().shard_elements(served.shard()));
  const auto workers = static_cast<uint64_t>(served.plan().num_workers());
  return {.peer_bytes = 2 * shard_bytes + kMaxMessageBytes,
          .bytes = (workers + 2) * shard_bytes + kMaxMessageBytes};
}

// The part of a request that names the plan.
const v1::StatisticsRequest& AddressOf(const v1::StatisticsRequest& request) {
  return request;
}
template <typename Request>
const v1::BlockAddress& AddressOf(const Request& request) {
  return request.address();
}

// The payload of an answer: the encoded weights, or the floats themselves.
EncodedWeights::Bytes BytesOf(const WeightsSnapshot& weights, bool unrounded) {
  if (weights.encoded && !unrounded) {
    return weights.encoded->Of(weights.weights.data());
  }
  return {.buffer = weights.weights,
          .size = weights.num_elements * sizeof(float),
          .crc32c = weights.crc32c};
}

}  // namespace

ParameterHandlers::ParameterHandlers(const Clock* clock,
                                     std::shared_ptr<const CallGuard> guard)
    : clock_(clock), guard_(std::move(guard)), memory_token_([] {
        std::random_device chance;
        return uint64_t{chance()} << 32 | chance();
      }()) {}

std::shared_ptr<ServedPlan> ParameterHandlers::Serve(
    std::shared_ptr<ServedPlan> served) {
  if (served) unread_->SetLimits(LimitsFor(*served));
  absl::MutexLock lock(&mu_);
  return std::exchange(served_, std::move(served));
}

std::shared_ptr<ServedPlan> ParameterHandlers::served() const {
  absl::MutexLock lock(&mu_);
  return served_;
}

int64_t ParameterHandlers::Deadline(uint32_t wait_ms) const {
  return clock_->NowMicros() + kMicrosPerMilli * std::min(wait_ms, kMaxWaitMs);
}

void ParameterHandlers::Fail(ServedCall* call, const absl::Status& status) {
  rejections_.Count(status);
  call->Fail(status);
}

void ParameterHandlers::Refuse(ServedCall* call, const absl::Status& status) {
  Fail(call, Reject(absl::IsUnavailable(status)          ? Rejection::kNoPlan
                    : absl::IsFailedPrecondition(status) ? Rejection::kEpoch
                                                         : Rejection::kCaller,
                    status));
}

template <typename Request>
std::shared_ptr<ServedPlan> ParameterHandlers::Accept(ServedCall* call,
                                                      Request* request,
                                                      Payload* payload) {
  absl::Status status = Decode(call, request, payload);
  if constexpr (requires { request->rank(); }) {
    if (status.ok()) {
      status = call->caller().SpeaksFor(v1::ROLE_WORKER, request->rank(),
                                        request->incarnation());
      if (!status.ok()) status = Reject(Rejection::kCaller, status);
    }
  }
  std::shared_ptr<ServedPlan> served = this->served();
  if (status.ok()) {
    status = ServedPlan::CheckAddress(served.get(), AddressOf(*request));
  }
  if (status.ok()) return served;
  Fail(call, status);
  return nullptr;
}

template <typename Response>
WeightsDone ParameterHandlers::AnswerWeights(ServedCall* call,
                                             MemoryReader reader,
                                             bool unrounded) {
  return [this, call, reader = std::move(reader),
          unrounded](absl::StatusOr<WeightsSnapshot> weights) {
    if (!weights.ok()) return Fail(call, weights.status());
    const std::string peer =
        reader.memory ? absl::StrCat("shared memory ", reader.connection)
                      : call->peer();
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
    const EncodedWeights::Bytes bytes = BytesOf(*weights, unrounded);
    Response response;
    response.set_version(weights->version);
    response.set_crc32c(bytes.crc32c);
    bytes_sent_ += bytes.size;
    std::vector<grpc::Slice> payload = {
        unread_->Send(peer, bytes.buffer, bytes.size)};
    if constexpr (std::is_same_v<Response, v1::PushPullResponse>) {
      response.set_skipped(weights->skipped);
      if (reader.memory) {
        if (const auto offset =
                reader.memory->OffsetOf(bytes.buffer.data(), bytes.size)) {
          response.set_shared_offset(*offset);
          reader.memory->Keep(reader.block, std::move(payload[0]));
          payload.clear();
        }
      }
    }
    SignHeader(&response);
    call->Answer(EncodeFrame(response, std::move(payload)));
  };
}

absl::Status ParameterHandlers::UseMemory(const v1::PushPullRequest& request,
                                          Contribution* contribution,
                                          MemoryReader* reader) {
  if (request.shared_memory() == 0) return absl::OkStatus();
  reader->connection = request.shared_memory();
  reader->block = request.address().block();
  reader->memory = peers_.Find(reader->connection);
  if (!reader->memory) {
    return Reject(Rejection::kAddress,
                  absl::DataLossError("there is no such connection for shared "
                                      "memory; send the bytes"));
  }
  reader->memory->Release(reader->block);
  if (request.ranges().empty()) return absl::OkStatus();
  absl::StatusOr<Payload> gradient = reader->memory->Gradient(request.ranges());
  if (!gradient.ok()) return Reject(Rejection::kShape, gradient.status());
  contribution->payload = *std::move(gradient);
  contribution->in_shared_memory = true;
  return absl::OkStatus();
}

absl::StatusOr<MemoryListener::Admitted> ParameterHandlers::Admit(
    const v1::SharedMemoryHello& hello, const UniqueFd& memory) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::optional<MemberPlace> worker,
                             guard_->CheckRank(hello.ticket(), hello.rank()));
  const std::shared_ptr<ServedPlan> served = this->served();
  TRIBUTARY_RETURN_IF_ERROR(
      ServedPlan::CheckAddress(served.get(), hello.address()));
  TRIBUTARY_RETURN_IF_ERROR(
      served->CheckHolder(hello.address(), hello.rank(),
                          worker ? worker->incarnation : UINT64_MAX));
  if (hello.token() != memory_token_) {
    return absl::PermissionDeniedError("the token is another server's");
  }
  if (!served->memory()) {
    return absl::UnavailableError("this plan's memory is not shared");
  }
  TRIBUTARY_ASSIGN_OR_RETURN(std::shared_ptr<const MappedArena> theirs,
                             MappedArena::Map(memory));
  MemoryListener::Admitted admitted;
  TRIBUTARY_ASSIGN_OR_RETURN(admitted.memory, served->memory()->Share());
  admitted.connection = peers_.Add(
      std::make_shared<PeerMemory>(std::move(theirs), served->memory()));
  return admitted;
}

void ParameterHandlers::PushPull(ServedCall* call) {
  v1::PushPullRequest request;
  Payload payload;
  const auto served = Accept(call, &request, &payload);
  if (!served) return;
  Contribution contribution;
  contribution.rank = request.rank();
  contribution.incarnation = request.incarnation();
  contribution.step = request.step();
  contribution.samples = request.samples();
  contribution.total_samples = request.total_samples();
  contribution.crc32c = request.crc32c();
  contribution.base_version = request.base_version();
  contribution.learning_rates = {request.learning_rates().begin(),
                                 request.learning_rates().end()};
  contribution.payload = std::move(payload);
  MemoryReader reader;
  if (absl::Status status = UseMemory(request, &contribution, &reader);
      !status.ok()) {
    return Fail(call, status);
  }
  bytes_received_ += contribution.payload.size();
  TRIBUTARY_FAILPOINT("server-received");
  served->store().PushPull(
      static_cast<int>(request.address().block()), std::move(contribution),
      Deadline(request.wait_ms()),
      AnswerWeights<v1::PushPullResponse>(call, std::move(reader)));
}

void ParameterHandlers::Pull(ServedCall* call) {
  v1::PullRequest request;
  Payload none;
  const auto served = Accept(call, &request, &none);
  if (!served) return;
  ParameterShard& store = served->store();
  const auto block = static_cast<int>(request.address().block());
  const int64_t version = std::max<int64_t>(request.min_version(), 0);
  const int64_t deadline = Deadline(request.wait_ms());
  WeightsDone done =
      AnswerWeights<v1::PullResponse>(call, {}, request.unrounded());
  if (request.has_finished_steps()) {
    store.PullFinished(block, request.finished_steps(), deadline,
                       std::move(done));
  } else if (request.exact()) {
    store.PullExact(block, version, deadline, std::move(done));
  } else {
    store.Pull(block, version, deadline, std::move(done));
  }
}

void ParameterHandlers::ReadClock(ServedCall* call) {
  v1::ClockRequest request;
  Payload none;
  const auto served = Accept(call, &request, &none);
  if (!served) return;
  const absl::StatusOr<RankProgress> clock = served->ReadClock(request);
  if (!clock.ok()) return Fail(call, clock.status());
  v1::ClockResponse response;
  response.set_initialized(clock->initialized);
  response.set_steps(clock->steps);
  response.set_begun(clock->begun);
  if (served->memory()) {
    response.set_shared_memory_socket(memory_socket_);
    response.set_shared_memory_token(memory_token_);
  }
  SignHeader(&response);
  call->Answer(EncodeFrame(response, {}));
}

void ParameterHandlers::Initialize(ServedCall* call) {
  v1::InitializeRequest request;
  Payload payload;
  const auto served = Accept(call, &request, &payload);
  if (!served) return;
  bytes_received_ += payload.size();
  // The request names no rank, but its sender's ticket does.
  const std::optional<MemberPlace>& worker = call->caller().place;
  absl::Status status;
  if (worker) {
    status = served->CheckHolder(request.address(), worker->index,
                                 worker->incarnation);
  }
  if (status.ok()) {
    status = served->store().Initialize(
        static_cast<int>(request.address().block()), request.crc32c(), payload);
  }
  if (!status.ok()) return Fail(call, status);
  call->Answer(EncodeFrame(v1::InitializeResponse(), {}));
}

void ParameterHandlers::ReadStatistics(ServedCall* call) {
  v1::StatisticsRequest request;
  Payload none;
  const auto served = Accept(call, &request, &none);
  if (!served) return;
  served->ReadStatistics(
      request, Deadline(request.wait_ms()),
      [this, call](absl::StatusOr<std::vector<double>> values) {
        if (!values.ok()) return Fail(call, values.status());
        call->Answer(EncodeStatistics(*values));
      });
}

void ParameterHandlers::GetServerStatus(ServedCall* call) {
  v1::ServerStatusRequest request;
  Payload none;
  if (absl::Status status = Decode(call, &request, &none); !status.ok()) {
    return Fail(call, status);
  }
  call->Answer(EncodeFrame(Status(), {}));
}

v1::ServerStatusResponse ParameterHandlers::Status() const {
  v1::ServerStatusResponse response;
  response.set_bytes_received(bytes_received_);
  response.set_bytes_sent(bytes_sent_);
  response.set_unread_bytes(unread_->bytes());
  for (int i = 0; i < kNumRejections; ++i) {
    const auto reason = static_cast<Rejection>(i);
    (*response.mutable_rejections())[RejectionName(reason)] =
        rejections_.of(reason);
  }
  response.set_shared_memory_workers(static_cast<uint32_t>(peers_.size()));
  const std::shared_ptr<const ServedPlan> served = this->served();
  if (!served) return response;
  const ParameterShard& store = served->store();
  response.set_shard(served->shard());
  response.set_plan_epoch(served->plan().epoch());
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

void ParameterHandlers::WriteMetrics(MetricsWriter* writer) const {
  const std::shared_ptr<const ServedPlan> served = this->served();
  if (served) WriteServerMetrics(Status(), served->waits(), writer);
}

}  // namespace tributary
