// SPDX-License-Identifier: Apache-2.0
#include "common/wire/blocking_call.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "common/wire/grpc_status.h"
#include "common/wire/tensor_frame.h"

namespace tributary {

absl::StatusOr<grpc::ByteBuffer> BlockingCall(grpc::GenericStub* stub,
                                              const char* method,
                                              grpc::ClientContext* context,
                                              const grpc::ByteBuffer& request) {
  grpc::CompletionQueue queue;
  const auto reader = stub->PrepareUnaryCall(context, method, request, &queue);
  grpc::ByteBuffer answer;
  grpc::Status status;
  reader->StartCall();
  reader->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) return ToAbslStatus(status);
  return answer;
}

absl::Status BlockingCall(const std::shared_ptr<grpc::Channel>& channel,
                          const char* method, grpc::ClientContext* context,
                          const google::protobuf::MessageLite& request,
                          google::protobuf::MessageLite* response) {
  grpc::GenericStub stub(channel);
  TRIBUTARY_ASSIGN_OR_RETURN(
      grpc::ByteBuffer answer,
      BlockingCall(&stub, method, context, EncodeFrame(request, {})));
  grpc::ProtoBufferReader bytes(&answer);
  if (bytes.status().ok() && response->ParseFromZeroCopyStream(&bytes)) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("malformed message: answer of ",
                                          answer.Length(), " bytes is no ",
                                          response->GetTypeName()));
}

}  // namespace tributary
