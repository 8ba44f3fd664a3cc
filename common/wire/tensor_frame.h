#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <vector>

#include "absl/status/status.h"
#include "common/wire/payload.h"
#include "common/wire/shared_buffer.h"

namespace tributary {

// The field number that every message with tensor bytes gives to `payload`.
inline constexpr int kPayloadField = 15;

// Everything in a message but the payload; a longer one is refused.
inline constexpr size_t kMaxHeaderBytes = 64 << 10;

// Writes `header` (payload unset) and the payload field behind it, as protobuf
// would, by reference: the slices' bytes are not copied. Without slices there is
// no field.
grpc::ByteBuffer EncodeFrame(const google::protobuf::MessageLite& header,
                             std::vector<grpc::Slice> payload);

// Splits a message into header fields (parsed into `header`) and its payload
// (shared with `buffer`'s slices, not copied). The fields may come in any
// order; of several payloads the last counts, as in protobuf. InvalidArgument
// with the offset when the bytes are no message.
absl::Status DecodeFrame(const grpc::ByteBuffer& buffer,
                         google::protobuf::MessageLite* header,
                         Payload* payload);

// Slices for EncodeFrame. Borrowed memory must outlive the channel's use of it.
grpc::Slice BorrowedSlice(const void* data, size_t n);
grpc::Slice SharedSlice(SharedBuffer buffer, size_t n);

}  // namespace tributary
