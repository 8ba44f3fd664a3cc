// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/wire/calls/outgoing_calls.h"
#include "common/wire/identity/caller_proof.h"

namespace tributary {

// Calls of gRPC, which show a proof to every server. The tags come from a
// completion queue.
class GrpcCalls final : public OutgoingCalls {
 public:
  // servers: HOST:PORT each. Connects lazily. The queue must outlive it.
  GrpcCalls(const std::vector<std::string>& servers, CallerProof proof,
            grpc::CompletionQueue* queue);

  std::unique_ptr<Call> Start(int server, const char* method,
                              const grpc::ByteBuffer& request,
                              absl::Duration timeout,
                              CompletionTag* tag) override;
  std::unique_ptr<Alarm> SetAlarm(absl::Duration pause,
                                  CompletionTag* tag) override;
  absl::StatusOr<grpc::ByteBuffer> CallAndWait(int server, const char* method,
                                               const grpc::ByteBuffer& request,
                                               absl::Duration timeout);

 private:
  const CallerProof proof_;
  grpc::CompletionQueue* const queue_;
  std::deque<grpc::GenericStub> stubs_;  // [server]
};

// GrpcCalls with a queue of its own.
class GrpcCallQueue final : public CallQueue {
 public:
  GrpcCallQueue(const std::vector<std::string>& servers, CallerProof proof)
      : calls_(servers, std::move(proof), &queue_) {}
  // All calls must have ended.
  ~GrpcCallQueue() override;

  std::unique_ptr<Call> Start(int server, const char* method,
                              const grpc::ByteBuffer& request,
                              absl::Duration timeout,
                              CompletionTag* tag) override {
    return calls_.Start(server, method, request, timeout, tag);
  }
  std::unique_ptr<Alarm> SetAlarm(absl::Duration pause,
                                  CompletionTag* tag) override {
    return calls_.SetAlarm(pause, tag);
  }
  absl::StatusOr<grpc::ByteBuffer> CallAndWait(
      int server, const char* method, const grpc::ByteBuffer& request,
      absl::Duration timeout) override {
    return calls_.CallAndWait(server, method, request, timeout);
  }
  Next HandleNext(absl::Duration timeout) override;
  void Shutdown() override { queue_.Shutdown(); }

 private:
  grpc::CompletionQueue queue_;
  GrpcCalls calls_;
};

}  // namespace tributary
