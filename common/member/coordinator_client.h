// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/member/simulated_host.h"
#include "common/wire/identity/caller_proof.h"
#include "common/wire/retry_policy.h"
#include "tributary/v1/coordinator_service.grpc.pb.h"

namespace tributary {

// True when the same call may succeed later, because the coordinator did not
// answer or is short of threads at the moment.
bool MayPass(const absl::Status& status);

// How long a call has waited for a coordinator that listens but has not
// answered in time, as far as CoordinatorClient's error can tell. Nullopt:
// another error, also when the connection was refused.
std::optional<absl::Duration> UnansweredFor(const absl::Status& status);

// Calls the coordinator and retries while it cannot be reached, until it
// answers or the timeout passes. Thread-safe.
//
// Unavailable: "coordinator HOST:PORT could not be reached for 30.0 s: why".
// InvalidArgument: a message is larger than its receiver takes; it names both
// sizes. Every other error is the coordinator's own answer.
class CoordinatorClient {
 public:
  // The pauses between the attempts of a call.
  static constexpr RetryPolicy kRetry = {.first_pause = absl::Milliseconds(50),
                                         .longest_pause = absl::Seconds(1)};

  static constexpr absl::Duration kAttemptTimeout = absl::Seconds(5);
  // How long the coordinator may hold a call.
  static constexpr absl::Duration kHold = absl::Seconds(2);
  // After this time a person need not expect that the coordinator comes back.
  static constexpr absl::Duration kAway = absl::Seconds(10);

  struct Options {
    std::string address;  // host:port
    const Clock* clock = &Clock::Real();
    // A call without an answer is sent again after this time.
    absl::Duration attempt_timeout = kAttemptTimeout;
    CallerProof proof;
    SimulatedHost* simulated = nullptr;  // makes the attempts instead of gRPC
  };

  // Called with the coordinator's answer each time that the coordinator has
  // held a call until its timeout.
  using Waits = std::function<void(const absl::Status&)>;

  // Does not connect yet. InvalidArgument when `address` is not a host:port.
  static absl::StatusOr<std::unique_ptr<CoordinatorClient>> Create(
      Options options);

  absl::Status SubmitJob(const v1::SubmitJobRequest& request,
                         absl::Duration timeout);
  absl::StatusOr<v1::RegisterResponse> Register(
      const v1::RegisterRequest& request, absl::Duration timeout);
  absl::Status DeclareModel(const v1::DeclareModelRequest& request,
                            absl::Duration timeout);
  // DeadlineExceeded names the missing members.
  absl::StatusOr<v1::Plan> GetPlan(uint64_t min_epoch, absl::Duration timeout);
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(
      const v1::HeartbeatRequest& request, absl::Duration timeout);
  absl::StatusOr<v1::ReportEvaluationResponse> ReportEvaluation(
      const v1::ReportEvaluationRequest& request, absl::Duration timeout);
  // DeadlineExceeded names the missing ranks; `waits` gets the same message
  // from time to time.
  absl::StatusOr<v1::ExchangeResponse> Exchange(v1::ExchangeRequest request,
                                                absl::Duration timeout,
                                                const Waits& waits);
  // DeadlineExceeded names what the evaluation waits for.
  absl::StatusOr<v1::AwaitEvaluationResponse> AwaitEvaluation(
      v1::AwaitEvaluationRequest request, absl::Duration timeout);
  absl::Status PutWeights(const v1::PutWeightsRequest& request,
                          absl::Duration timeout);
  absl::StatusOr<v1::JobStatusResponse> GetJobStatus(absl::Duration timeout);
  absl::StatusOr<v1::StopJobResponse> StopJob(const v1::StopJobRequest& request,
                                              absl::Duration timeout);
  // With `request.after`, waits up to `timeout` for the checkpoint, but gives
  // up once the coordinator has been away for kAway.
  absl::StatusOr<v1::TakeCheckpointResponse> TakeCheckpoint(
      v1::TakeCheckpointRequest request, absl::Duration timeout);

  // Shows this ticket with every later call. Call it before other threads call.
  void SetTicket(const std::string& ticket);

  // Ends running and later calls at once, with Cancelled.
  void Cancel();

  const std::string& address() const { return options_.address; }

 private:
  template <typename Request, typename Response>
  using Method = grpc::Status (v1::CoordinatorService::Stub::*)(
      grpc::ClientContext*, const Request&, Response*);

  explicit CoordinatorClient(Options options);

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(Method<Request, Response> method,
                                const Request& request, absl::Duration timeout);
  template <typename Request, typename Response>
  absl::Status Attempt(Method<Request, Response> method, const Request& request,
                       absl::Duration timeout, Response* response);
  // Makes a call that the coordinator may hold for a while, and repeats it
  // until the timeout, or until the coordinator has been away for
  // `longest_away`.
  template <typename Request, typename Response>
  absl::StatusOr<Response> HeldCall(
      Method<Request, Response> method, Request request, absl::Duration timeout,
      const Waits& waits = nullptr,
      absl::Duration longest_away = absl::InfiniteDuration());
  // Says why the coordinator did not answer. why: the last attempt's error.
  // refused: an attempt failed before its timeout. Sets *slow if the
  // coordinator may only be too slow.
  std::string Reason(const absl::Status& why, bool refused, bool* slow) const;
  absl::Status Unreachable(int64_t since_micros, const absl::Status& why,
                           bool refused) const;
  bool IsConnected() const;
  // Pauses after attempt number `attempt` (from 1), at most until a connection
  // is established. False when cancelled.
  bool Backoff(int attempt, absl::Duration limit);
  double Jitter();                      // in [0, 1)
  bool PauseFor(absl::Duration pause);  // false when cancelled

  const Options options_;
  CallerProof proof_;
  const std::shared_ptr<grpc::Channel> channel_;  // null: simulated
  const std::unique_ptr<v1::CoordinatorService::Stub> stub_;

  absl::Mutex mu_;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<grpc::ClientContext*> running_ ABSL_GUARDED_BY(mu_);
  std::minstd_rand jitter_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
