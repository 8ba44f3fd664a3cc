// SPDX-License-Identifier: Apache-2.0
#include "common/wire/calls/grpc_calls.h"

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <utility>

#include "common/wire/blocking_call.h"
#include "common/wire/channel.h"
#include "common/wire/deadline.h"
#include "common/wire/grpc_status.h"

namespace tributary {
namespace {

class GrpcCall final : public OutgoingCalls::Call {
 public:
  GrpcCall(absl::Duration timeout, const CallerProof& proof) {
    context_.set_deadline(DeadlineAfter(timeout));
    proof.AddTo(&context_);
  }

  void Start(grpc::GenericStub* stub, const char* method,
             const grpc::ByteBuffer& request, grpc::CompletionQueue* queue,
             CompletionTag* tag) {
    reader_ = stub->PrepareUnaryCall(&context_, method, request, queue);
    reader_->StartCall();
    reader_->Finish(&answer_, &status_, tag);
  }

  void Cancel() override { context_.TryCancel(); }
  absl::StatusOr<grpc::ByteBuffer> TakeAnswer() override {
    if (!status_.ok()) return ToAbslStatus(status_);
    return std::move(answer_);
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader_;
  grpc::ByteBuffer answer_;
  grpc::Status status_;
};

class GrpcAlarm final : public OutgoingCalls::Alarm {
 public:
  GrpcAlarm(absl::Duration pause, grpc::CompletionQueue* queue,
            CompletionTag* tag) {
    alarm_.Set(queue, DeadlineAfter(pause), tag);
  }
  void Cancel() override { alarm_.Cancel(); }

 private:
  grpc::Alarm alarm_;
};

}  // namespace

GrpcCalls::GrpcCalls(const std::vector<std::string>& servers, CallerProof proof,
                     grpc::CompletionQueue* queue)
    : proof_(std::move(proof)), queue_(queue) {
  for (const std::string& server : servers) {
    stubs_.emplace_back(
        DataChannel(server, proof_.ForChannel(PeerRole::kServer)));
  }
}

std::unique_ptr<OutgoingCalls::Call> GrpcCalls::Start(
    int server, const char* method, const grpc::ByteBuffer& request,
    absl::Duration timeout, CompletionTag* tag) {
  auto call = std::make_unique<GrpcCall>(timeout, proof_);
  call->Start(&stubs_[server], method, request, queue_, tag);
  return call;
}

std::unique_ptr<OutgoingCalls::Alarm> GrpcCalls::SetAlarm(absl::Duration pause,
                                                          CompletionTag* tag) {
  return std::make_unique<GrpcAlarm>(pause, queue_, tag);
}

absl::StatusOr<grpc::ByteBuffer> GrpcCalls::CallAndWait(
    int server, const char* method, const grpc::ByteBuffer& request,
    absl::Duration timeout) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(timeout));
  proof_.AddTo(&context);
  return BlockingCall(&stubs_[server], method, &context, request);
}

GrpcCallQueue::~GrpcCallQueue() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

CallQueue::Next GrpcCallQueue::HandleNext(absl::Duration timeout) {
  void* tag = nullptr;
  bool ok = false;
  const gpr_timespec until = timeout > absl::ZeroDuration()
                                 ? DeadlineAfter(timeout)
                                 : gpr_inf_past(GPR_CLOCK_MONOTONIC);
  switch (queue_.AsyncNext(&tag, &ok, until)) {
    case grpc::CompletionQueue::SHUTDOWN:
      return Next::kShutdown;
    case grpc::CompletionQueue::TIMEOUT:
      return Next::kTimeout;
    case grpc::CompletionQueue::GOT_EVENT:
      break;
  }
  static_cast<CompletionTag*>(tag)->Proceed(ok);
  return Next::kHandled;
}

}  // namespace tributary
