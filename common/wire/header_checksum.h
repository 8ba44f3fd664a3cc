#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/parameter_service.pb.h"

namespace tributary {

// The checksum of a message's fields beside payload, the payload's checksum and
// header_crc32c itself: CRC-32C of 64-bit little-endian words, so that any
// language computes it (docs/formats.md). First the message's number, in the
// order below from 1; then the fields in the order of their numbers. An address
// is its four fields, a bool 0 or 1, an optional field 0 when it is absent and
// 1 and its value otherwise, a list its length and its values.
uint32_t HeaderCrc32c(const v1::PushPullRequest& message);
uint32_t HeaderCrc32c(const v1::PushPullResponse& message);
uint32_t HeaderCrc32c(const v1::PullRequest& message);
uint32_t HeaderCrc32c(const v1::PullResponse& message);
uint32_t HeaderCrc32c(const v1::ClockRequest& message);
uint32_t HeaderCrc32c(const v1::ClockResponse& message);
uint32_t HeaderCrc32c(const v1::InitializeRequest& message);
uint32_t HeaderCrc32c(const v1::StatisticsRequest& message);
uint32_t HeaderCrc32c(const v1::StatisticsResponse& message);
uint32_t HeaderCrc32c(const v1::PutWeightsRequest& message);

// Once all other fields are set.
template <typename Message>
void SignHeader(Message* message) {
  message->set_header_crc32c(HeaderCrc32c(*message));
}

// DataLoss when a field is not what was sent.
template <typename Message>
absl::Status CheckHeader(const Message& message) {
  const uint32_t crc = HeaderCrc32c(message);
  if (crc == message.header_crc32c()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the header of a ", message.GetDescriptor()->name(),
                   " was damaged on the way: crc32c ", crc, ", sent as ",
                   message.header_crc32c(), "; send it again"));
}

}  // namespace tributary
