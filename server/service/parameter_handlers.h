// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/telemetry/metrics_writer.h"
#include "common/wire/identity/call_guard.h"
#include "server/service/calls/served_call.h"
#include "server/service/calls/unread_answers.h"
#include "server/service/served_plan.h"
#include "server/service/shared_memory/memory_listener.h"
#include "server/service/shared_memory/peer_memory.h"
#include "server/store/rejection.h"

namespace tributary {

// Answers the calls of ParameterService: decodes and validates a call, hands it
// to the plan being served and sends the shard's response. Counts what is
// received, sent and refused. The handlers run on the queue's thread; the other
// functions are thread-safe.
class ParameterHandlers {
 public:
  // `guard` has admitted the calls; it is asked about workers that share
  // memory.
  ParameterHandlers(const Clock* clock, std::shared_ptr<const CallGuard> guard);

  // Sets the plan that calls are for and returns the previous one. Null: calls
  // are answered with Unavailable.
  std::shared_ptr<ServedPlan> Serve(std::shared_ptr<ServedPlan> served);
  std::shared_ptr<ServedPlan> served() const;

  void PushPull(ServedCall* call);
  void Pull(ServedCall* call);
  void ReadClock(ServedCall* call);
  void Initialize(ServedCall* call);
  void ReadStatistics(ServedCall* call);
  void GetServerStatus(ServedCall* call);
  // Answers a call that was not admitted.
  void Refuse(ServedCall* call, const absl::Status& status);

  // Where workers on this machine may connect to share memory; call it before
  // the first call is handled.
  void SetMemorySocket(std::string socket) {
    memory_socket_ = std::move(socket);
  }
  // Lets a worker share memory with the plan that is served. Errors as in
  // ServedPlan::CheckAddress and MappedArena::Map; PermissionDenied: the token
  // is not the one that this server gave, or the ticket is not the rank's;
  // Unavailable: the plan's memory is not shared.
  absl::StatusOr<MemoryListener::Admitted> Admit(
      const v1::SharedMemoryHello& hello, const UniqueFd& memory);
  // Call it when the worker has ended the connection.
  void OnGone(uint64_t connection) { peers_.Remove(connection); }

  v1::ServerStatusResponse Status() const;
  // Writes nothing before there is a plan.
  void WriteMetrics(MetricsWriter* writer) const;

 private:
  int64_t Deadline(uint32_t wait_ms) const;
  // Answers with the error and counts its reason.
  void Fail(ServedCall* call, const absl::Status& status);
  // Returns a callback that answers a call with weights or a status. unrounded:
  // the callback sends float32, whatever the plan's wire format of weights.
  template <typename Response>
  WeightsDone AnswerWeights(ServedCall* call, MemoryReader reader = {},
                            bool unrounded = false);
  // Finds the caller's memory, if the call uses it, and the gradient in it.
  absl::Status UseMemory(const v1::PushPullRequest& request,
                         Contribution* contribution, MemoryReader* reader);
  // Decodes a call and finds the plan that it is for. Null: the call was
  // answered with an error.
  template <typename Request>
  std::shared_ptr<ServedPlan> Accept(ServedCall* call, Request* request,
                                     Payload* payload);

  const Clock* const clock_;
  const std::shared_ptr<const CallGuard> guard_;
  RejectionCounters rejections_;
  std::atomic<uint64_t> bytes_received_{0};
  std::atomic<uint64_t> bytes_sent_{0};
  const std::shared_ptr<UnreadAnswers> unread_ =
      std::make_shared<UnreadAnswers>();
  std::string memory_socket_;  // empty: none
  const uint64_t memory_token_;
  PeerMemories peers_;

  mutable absl::Mutex mu_;
  std::shared_ptr<ServedPlan> served_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
