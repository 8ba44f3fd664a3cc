// SPDX-License-Identifier: Apache-2.0
#include "common/member/coordinator_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/host/address.h"
#include "common/host/reachability.h"
#include "common/host/steady_waits.h"
#include "common/member/answer_limits.h"
#include "common/status/status_macros.h"
#include "common/wire/channel.h"
#include "common/wire/deadline.h"
#include "common/wire/grpc_status.h"

namespace tributary {
namespace {

// Time limit of the connection attempt that finds out why nobody answered.
constexpr absl::Duration kProbe = absl::Milliseconds(500);

// The first hold of a call with `waits`: short, so that `waits` is called soon.
constexpr absl::Duration kFirstHold = absl::Milliseconds(200);

std::shared_ptr<grpc::Channel> Connect(
    const CoordinatorClient::Options& options) {
  if (options.simulated != nullptr) return nullptr;
  grpc::ChannelArguments arguments = CommonArguments();
  // gRPC's own back-off grows to two minutes; a coordinator that starts late
  // should be found within a second.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  return grpc::CreateCustomChannel(
      options.address, options.proof.ForChannel(PeerRole::kCoordinator),
      arguments);
}

// The payload of an error: the seconds without an answer.
constexpr char kUnanswered[] = "tributary.UnansweredSeconds";

// gRPC reports a message that is too large with the code of a peer that lacks
// resources, although a retry cannot help. Its text names both sizes.
bool IsTooLarge(const absl::Status& status) {
  return absl::IsResourceExhausted(status) &&
         absl::StrContains(status.message(), "message larger than max");
}

}  // namespace

bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status);
}

std::optional<absl::Duration> UnansweredFor(const absl::Status& status) {
  const auto payload = status.GetPayload(kUnanswered);  // absl::optional
  double seconds = 0;
  if (!payload || !absl::SimpleAtod(std::string(*payload), &seconds)) {
    return std::nullopt;
  }
  return absl::Seconds(seconds);
}

absl::StatusOr<std::unique_ptr<CoordinatorClient>> CoordinatorClient::Create(
    Options options) {
  TRIBUTARY_RETURN_IF_ERROR(CheckAddress(options.address));
  return std::unique_ptr<CoordinatorClient>(
      new CoordinatorClient(std::move(options)));
}

CoordinatorClient::CoordinatorClient(Options options)
    : options_(std::move(options)),
      proof_(options_.proof),
      channel_(Connect(options_)),
      stub_(channel_ ? v1::CoordinatorService::NewStub(channel_) : nullptr),
      jitter_(std::random_device{}()) {}

void CoordinatorClient::SetTicket(const std::string& ticket) {
  proof_ = options_.proof.WithTicket(ticket);
}

void CoordinatorClient::Cancel() {
  absl::MutexLock lock(&mu_);
  cancelled_ = true;
  for (grpc::ClientContext* context : running_) context->TryCancel();
}

bool CoordinatorClient::PauseFor(absl::Duration pause) {
  absl::MutexLock lock(&mu_);
  AwaitFor(&mu_, absl::Condition(&cancelled_), pause);
  return !cancelled_;
}

double CoordinatorClient::Jitter() {
  if (options_.simulated != nullptr) return options_.simulated->Chance();
  absl::MutexLock lock(&mu_);
  return std::uniform_real_distribution<>()(jitter_);
}

bool CoordinatorClient::IsConnected() const {
  return channel_ == nullptr ||
         channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY;
}

bool CoordinatorClient::Backoff(int attempt, absl::Duration limit) {
  const bool was_connected = IsConnected();
  absl::Duration left = std::min(kRetry.Pause(attempt - 1, Jitter()), limit);
  if (was_connected) return PauseFor(left);
  const absl::Duration end = SteadyNow() + left;
  if (!PauseFor(std::min(left, kRetry.first_pause))) return false;
  // Without threads of its own, gRPC makes progress on a connection only while
  // a thread waits for something; a call that fails at once does not wait.
  for (; (left = end - SteadyNow()) > absl::ZeroDuration();) {
    const bool connected = channel_->WaitForConnected(
        DeadlineAfter(std::min(left, kRetry.first_pause)));
    if (!PauseFor(absl::ZeroDuration())) return false;
    if (connected) return true;
  }
  return true;
}

template <typename Request, typename Response>
absl::Status CoordinatorClient::Attempt(Method<Request, Response> method,
                                        const Request& request,
                                        absl::Duration timeout,
                                        Response* response) {
  response->Clear();
  if (options_.simulated != nullptr) {
    {
      absl::MutexLock lock(&mu_);
      if (cancelled_) return absl::CancelledError("the client was cancelled");
    }
    return options_.simulated->Call(request, timeout, response);
  }
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(timeout));
  proof_.AddTo(&context);
  {
    absl::MutexLock lock(&mu_);
    if (cancelled_) return absl::CancelledError("the client was cancelled");
    running_.push_back(&context);
  }
  const absl::Status status =
      ToAbslStatus((stub_.get()->*method)(&context, request, response));
  absl::MutexLock lock(&mu_);
  running_.erase(std::find(running_.begin(), running_.end(), &context));
  if (absl::IsCancelled(status) && !cancelled_) {
    return absl::UnavailableError("the coordinator ended the call");
  }
  if (IsTooLarge(status)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message to or from coordinator ", options_.address,
                     " is too large: ", status.message()));
  }
  return status;
}

template <typename Request, typename Response>
absl::StatusOr<Response> CoordinatorClient::Call(
    Method<Request, Response> method, const Request& request,
    absl::Duration timeout) {
  const int64_t start = options_.clock->NowMicros();
  Response response;
  bool refused = false;
  for (int attempt = 1;; ++attempt) {
    const absl::Duration left =
        timeout - absl::Microseconds(options_.clock->NowMicros() - start);
    const absl::Status status = Attempt(
        method, request, std::min(left, options_.attempt_timeout), &response);
    if (status.ok()) return response;
    if (!MayPass(status)) return status;
    refused = refused || absl::IsUnavailable(status);
    const absl::Duration rest =
        timeout - absl::Microseconds(options_.clock->NowMicros() - start);
    if (rest <= absl::ZeroDuration())
      return Unreachable(start, status, refused);
    if (!Backoff(attempt, rest)) {
      return absl::CancelledError("the client was cancelled");
    }
  }
}

std::string CoordinatorClient::Reason(const absl::Status& why, bool refused,
                                      bool* slow) const {
  if (options_.simulated != nullptr) return std::string(why.message());
  const bool connected = IsConnected();
  const std::string reason = WhyNobodyAnswers(options_.address, kProbe);
  if (!reason.empty()) return reason;
  if (const absl::Status dates = proof_.CheckDates(); !dates.ok()) {
    return std::string(dates.message());
  }
  if (!absl::IsDeadlineExceeded(why)) return std::string(why.message());
  *slow = connected || !refused;
  return absl::StrCat("something listens there, but did not answer in time",
                      *slow ? "; its machine may be overloaded" : "",
                      connected ? ""
                      : *slow   ? "; otherwise, does it "
                                : "; does it ",
                      connected ? ""
                      : proof_.encrypted()
                          ? "use TLS, the same certificate authority and a "
                            "certificate that is valid?"
                          : "want --tls?");
}

absl::Status CoordinatorClient::Unreachable(int64_t since_micros,
                                            const absl::Status& why,
                                            bool refused) const {
  const double seconds =
      static_cast<double>(options_.clock->NowMicros() - since_micros) / 1e6;
  bool slow = false;
  absl::Status status = absl::UnavailableError(
      absl::StrFormat("coordinator %s could not be reached for %.1f s: %s",
                      options_.address, seconds, Reason(why, refused, &slow)));
  if (slow) status.SetPayload(kUnanswered, absl::Cord(absl::StrCat(seconds)));
  return status;
}

absl::Status CoordinatorClient::SubmitJob(const v1::SubmitJobRequest& request,
                                          absl::Duration timeout) {
  return Call(&v1::CoordinatorService::Stub::SubmitJob, request, timeout)
      .status();
}

absl::StatusOr<v1::RegisterResponse> CoordinatorClient::Register(
    const v1::RegisterRequest& request, absl::Duration timeout) {
  return Call(&v1::CoordinatorService::Stub::Register, request, timeout);
}

absl::Status CoordinatorClient::DeclareModel(
    const v1::DeclareModelRequest& request, absl::Duration timeout) {
  return Call(&v1::CoordinatorService::Stub::DeclareModel, request, timeout)
      .status();
}

template <typename Request, typename Response>
absl::StatusOr<Response> CoordinatorClient::HeldCall(
    Method<Request, Response> method, Request request, absl::Duration timeout,
    const Waits& waits, absl::Duration longest_away) {
  const int64_t start = options_.clock->NowMicros();
  int64_t heard = start;
  absl::Duration hold = waits ? kFirstHold : kHold;
  Response response;
  for (int attempt = 1;; ++attempt) {
    const absl::Duration left =
        timeout - absl::Microseconds(options_.clock->NowMicros() - start);
    const absl::Duration wait = std::clamp(left, absl::ZeroDuration(), hold);
    request.set_wait_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(wait)));
    const absl::Status status =
        Attempt(method, request, wait + options_.attempt_timeout, &response);
    if (status.ok()) return response;
    if (!MayPass(status)) return status;
    const int64_t now = options_.clock->NowMicros();
    if (absl::IsDeadlineExceeded(status)) heard = now;
    if (absl::Microseconds(now - start) >= timeout ||
        absl::Microseconds(now - heard) >= longest_away) {
      return absl::IsDeadlineExceeded(status) ? status
                                              : Unreachable(heard, status,
                                                            /*refused=*/true);
    }
    // The coordinator held the call until its timeout: repeat it without a
    // pause.
    if (absl::IsDeadlineExceeded(status)) {
      attempt = 0;
      hold = kHold;
      if (waits) waits(status);
    }
    if (attempt > 0 && !Backoff(attempt, left)) {
      return absl::CancelledError("the client was cancelled");
    }
  }
}

absl::StatusOr<v1::Plan> CoordinatorClient::GetPlan(uint64_t min_epoch,
                                                    absl::Duration timeout) {
  v1::GetPlanRequest request;
  request.set_min_epoch(min_epoch);
  return HeldCall(&v1::CoordinatorService::Stub::GetPlan, std::move(request),
                  timeout);
}

absl::StatusOr<v1::ExchangeResponse> CoordinatorClient::Exchange(
    v1::ExchangeRequest request, absl::Duration timeout, const Waits& waits) {
  return HeldCall(&v1::CoordinatorService::Stub::Exchange, std::move(request),
                  timeout, waits);
}

absl::StatusOr<v1::AwaitEvaluationResponse> CoordinatorClient::AwaitEvaluation(
    v1::AwaitEvaluationRequest request, absl::Duration timeout) {
  return HeldCall(&v1::CoordinatorService::Stub::AwaitEvaluation,
                  std::move(request), timeout);
}

absl::Status CoordinatorClient::PutWeights(const v1::PutWeightsRequest& request,
                                           absl::Duration timeout) {
  return Call(&v1::CoordinatorService::Stub::PutWeights, request, timeout)
      .status();
}

absl::StatusOr<v1::HeartbeatResponse> CoordinatorClient::Heartbeat(
    const v1::HeartbeatRequest& request, absl::Duration timeout) {
  return Call(&v1::CoordinatorService::Stub::Heartbeat, request, timeout);
}

absl::StatusOr<v1::ReportEvaluationResponse>
CoordinatorClient::ReportEvaluation(const v1::ReportEvaluationRequest& request,
                                    absl::Duration timeout) {
  return Call(&v1::CoordinatorService::Stub::ReportEvaluation, request,
              timeout);
}

absl::StatusOr<v1::JobStatusResponse> CoordinatorClient::GetJobStatus(
    absl::Duration timeout) {
  return Call(&v1::CoordinatorService::Stub::GetJobStatus,
              v1::JobStatusRequest(), timeout);
}

absl::StatusOr<v1::StopJobResponse> CoordinatorClient::StopJob(
    const v1::StopJobRequest& request, absl::Duration timeout) {
  return Call(&v1::CoordinatorService::Stub::StopJob, request, timeout);
}

absl::StatusOr<v1::TakeCheckpointResponse> CoordinatorClient::TakeCheckpoint(
    v1::TakeCheckpointRequest request, absl::Duration timeout) {
  const auto method = &v1::CoordinatorService::Stub::TakeCheckpoint;
  return request.has_after() ? HeldCall(method, std::move(request), timeout,
                                        /*waits=*/nullptr, kAway)
                             : Call(method, request, timeout);
}

}  // namespace tributary
