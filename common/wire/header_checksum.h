// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutation.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/parameter_service.pb.h"

namespace tributary {

// The checksum of all fields of a message except the payload, the payload's
// checksum and header_crc32c itself. It is the CRC-32C of 64-bit little-endian
// words, so that any language can compute it (docs/messages.md). The first word
// is the message's number, from 1 in the order below. The fields follow in the
// order of their numbers: an address as its four fields, a bool as 0 or 1, an
// optional field as 0, or as 1 and its value, a list as its length and its
// values. The fields of shared memory are left out where it is not used:
// shared_memory and ranges when shared_memory is 0, shared_offset when it is
// absent, and socket (its length and bytes, after the token) when it is empty.
// total_samples is left out when it is 0, learning_rates (its length and the
// bits of each rate as a double) when it is empty, and skipped (5 and 1) when
// it is false.
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

// Sets the header's checksum. Call it after all other fields are set.
template <typename Message>
void SignHeader(Message* message) {
  message->set_header_crc32c(HeaderCrc32c(*message));
}

// DataLoss when the header differs from the one that was sent.
template <typename Message>
absl::Status CheckHeader(const Message& message) {
  const uint32_t crc = HeaderCrc32c(message);
  if (crc == message.header_crc32c() || TRIBUTARY_MUTATED("header-unchecked")) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat("the header of a ", message.GetDescriptor()->name(),
                   " was damaged on the way: crc32c ", crc, ", sent as ",
                   message.header_crc32c(), "; send it again"));
}

}  // namespace tributary
