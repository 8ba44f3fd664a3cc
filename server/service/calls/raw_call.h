// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/wire/calls/completion_tag.h"
#include "server/service/calls/served_call.h"
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

// A call of gRPC: it waits for a request, is given to the handler and deletes
// itself when it has been answered.
class RawCall final : public CompletionTag, public ServedCall {
 public:
  using Accept = std::function<void(
      grpc::ServerContext*, grpc::ByteBuffer*,
      grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>*, void* tag)>;
  using Handler = std::function<void(RawCall*)>;

  // Posts a slot for a request; a request that arrives posts the next slot.
  static void Post(Accept accept, Handler handler);

  grpc::ByteBuffer TakeRequest() override {
    grpc::ByteBuffer request;
    request.Swap(&request_);
    return request;
  }
  void Answer(const grpc::ByteBuffer& response) override;
  void Fail(const absl::Status& status) override;
  std::string peer() const override { return context_.peer(); }

  size_t request_bytes() const { return request_.Length(); }
  const grpc::ServerContext& context() const { return context_; }

  void Proceed(bool ok) override;

 private:
  RawCall(Accept accept, Handler handler);

  const Accept accept_;
  const Handler handler_;
  bool arrived_ = false;
  grpc::ServerContext context_;
  grpc::ByteBuffer request_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_;
};

}  // namespace tributary
