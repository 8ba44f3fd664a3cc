// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/wire/identity/call_guard.h"
#include "common/wire/side/completion_tag.h"
#include "tributary/v1/parameter_service.grpc.pb.h"

namespace tributary {

// ParameterService with raw bytes in every method: the handlers decode frames
// themselves, so tensor bytes never pass through protobuf.
using RawParameterService = v1::ParameterService::WithRawMethod_PushPull<
    v1::ParameterService::WithRawMethod_Pull<
        v1::ParameterService::WithRawMethod_ReadClock<
            v1::ParameterService::WithRawMethod_Initialize<
                v1::ParameterService::WithRawMethod_ReadStatistics<
                    v1::ParameterService::WithRawMethod_GetServerStatus<
                        v1::ParameterService::Service>>>>>>;

// One unary call on the server: it waits for a request, is given to the handler
// and lives until it is answered. The handler calls Answer or Fail exactly
// once, from any thread; the call then deletes itself.
class RawCall final : public CompletionTag {
 public:
  using Accept = std::function<void(
      grpc::ServerContext*, grpc::ByteBuffer*,
      grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>*, void* tag)>;
  using Handler = std::function<void(RawCall*)>;

  // Posts a slot for a request; a request that arrives posts the next slot.
  static void Post(Accept accept, Handler handler);

  // Moves the request out of the call, so that the new owner of a payload
  // decides how long it lives, not the call that still waits.
  grpc::ByteBuffer TakeRequest() {
    grpc::ByteBuffer request;
    request.Swap(&request_);
    return request;
  }
  size_t request_bytes() const { return request_.Length(); }
  void Answer(const grpc::ByteBuffer& response);
  void Fail(const absl::Status& status);

  // Address of the connection: "ipv4:127.0.0.1:40000".
  std::string peer() const { return context_.peer(); }
  const grpc::ServerContext& context() const { return context_; }
  // Who calls; set before the handler gets the call.
  const Caller& caller() const { return caller_; }
  void SetCaller(Caller caller) { caller_ = std::move(caller); }

  void Proceed(bool ok) override;

 private:
  RawCall(Accept accept, Handler handler);

  const Accept accept_;
  const Handler handler_;
  bool arrived_ = false;
  Caller caller_;
  grpc::ServerContext context_;
  grpc::ByteBuffer request_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_;
};

}  // namespace tributary
