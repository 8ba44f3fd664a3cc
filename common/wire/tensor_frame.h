// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/wire/payload.h"
#include "common/wire/shared_buffer.h"

namespace tributary {

// The field number of `payload` in every message with tensor bytes.
inline constexpr int kPayloadField = 15;

// Limit of everything in a message except the payload; larger headers are
// refused.
inline constexpr size_t kMaxHeaderBytes = 64 << 10;

// Encodes `header` (payload unset) followed by the payload field, as protobuf
// would. The payload's slices are referenced, not copied. Without payload bytes
// the field is omitted.
grpc::ByteBuffer EncodeFrame(const google::protobuf::MessageLite& header,
                             std::vector<grpc::Slice> payload);

// Splits a message into its other fields, parsed into `header`, and its
// payload, which shares the slices of `buffer`. The fields may come in any
// order; of several payloads the last counts, as in protobuf. InvalidArgument
// with the offset when the bytes are not such a message.
absl::Status DecodeFrame(const grpc::ByteBuffer& buffer,
                         google::protobuf::MessageLite* header,
                         Payload* payload);

// Slices for EncodeFrame, which keep the owner of their bytes alive. gRPC can
// read them after the call has ended: the bytes of a cancelled call may still
// wait for room in a socket.
grpc::Slice OwnedSlice(const void* data, size_t n,
                       std::shared_ptr<const void> owner);
grpc::Slice SharedSlice(SharedBuffer buffer, size_t n);

}  // namespace tributary
