// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tributary {

// Makes a unary call and waits for its answer. `method`: such as
// "/tributary.v1.ParameterService/Pull". DataLoss: the answer cannot be
// decoded, so it was damaged on the way. A call of a generated stub would then
// end with Unimplemented, as if the server did not know the method, and would
// not be repeated.
absl::Status BlockingCall(const std::shared_ptr<grpc::Channel>& channel,
                          const char* method, grpc::ClientContext* context,
                          const google::protobuf::MessageLite& request,
                          google::protobuf::MessageLite* response);
// The same for encoded messages.
absl::StatusOr<grpc::ByteBuffer> BlockingCall(grpc::GenericStub* stub,
                                              const char* method,
                                              grpc::ClientContext* context,
                                              const grpc::ByteBuffer& request);

}  // namespace tributary
