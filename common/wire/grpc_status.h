// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"
#include "common/status/utf8.h"

namespace tributary {

// gRPC and Abseil use the same status codes.
inline absl::Status ToAbslStatus(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

// Limit of a status message. It travels as metadata, of which a peer accepts 8
// KiB; beyond that, gRPC would replace the whole status by one with another
// code. Each byte that is not ASCII takes three.
inline constexpr size_t kMaxStatusBytes = 1024;

inline grpc::Status ToGrpcStatus(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(CutUtf8(status.message(), kMaxStatusBytes)));
}

}  // namespace tributary
