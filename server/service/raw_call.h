#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "tributary/v1/parameter_service.grpc.pb.h"

namespace tributary {

// What a completion queue hands back.
class CompletionTag {
 public:
  virtual ~CompletionTag() = default;
  virtual void Proceed(bool ok) = 0;
};

// ParameterService with every method in raw bytes: the handlers decode frames
// themselves, so tensor bytes never pass through protobuf.
using RawParameterService = v1::ParameterService::WithRawMethod_PushPull<
    v1::ParameterService::WithRawMethod_Pull<
        v1::ParameterService::WithRawMethod_ReadClock<
            v1::ParameterService::WithRawMethod_Initialize<
                v1::ParameterService::WithRawMethod_ReadStatistics<
                    v1::ParameterService::WithRawMethod_GetServerStatus<
                        v1::ParameterService::Service>>>>>>;

// One unary call on the server: waits for a request, is handed to the handler,
// lives until answered. Exactly one of Answer and Fail is called, once, from
// any thread; the call then deletes itself.
class RawCall final : public CompletionTag {
 public:
  using Accept = std::function<void(
      grpc::ServerContext*, grpc::ByteBuffer*,
      grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>*, void* tag)>;
  using Handler = std::function<void(RawCall*)>;

  // Posts a slot for the next request; each arrival posts the next slot.
  static void Post(Accept accept, Handler handler);

  // The request, which the call does not hold any longer: a payload lives as
  // long as whoever took it, not as long as the call waits.
  grpc::ByteBuffer TakeRequest() {
    grpc::ByteBuffer request;
    request.Swap(&request_);
    return request;
  }
  void Answer(const grpc::ByteBuffer& response);
  void Fail(const absl::Status& status);

  // Of the connection: "ipv4:127.0.0.1:40000".
  std::string peer() const { return context_.peer(); }

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
