// SPDX-License-Identifier: Apache-2.0
#include "server/service/calls/raw_call.h"

#include <utility>

#include "common/wire/grpc_status.h"

namespace tributary {

RawCall::RawCall(Accept accept, Handler handler)
    : accept_(std::move(accept)),
      handler_(std::move(handler)),
      writer_(&context_) {}

void RawCall::Post(Accept accept, Handler handler) {
  auto* call = new RawCall(std::move(accept), std::move(handler));
  CompletionTag* const tag = call;
  call->accept_(&call->context_, &call->request_, &call->writer_, tag);
}

void RawCall::Proceed(bool ok) {
  if (arrived_ || !ok) {  // answered, or the server is shutting down
    delete this;
    return;
  }
  arrived_ = true;
  Post(accept_, handler_);
  handler_(this);
}

void RawCall::Answer(const grpc::ByteBuffer& response) {
  writer_.Finish(response, grpc::Status::OK, static_cast<CompletionTag*>(this));
}

void RawCall::Fail(const absl::Status& status) {
  writer_.FinishWithError(ToGrpcStatus(status),
                          static_cast<CompletionTag*>(this));
}

}  // namespace tributary
