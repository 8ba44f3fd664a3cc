// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"
#include "common/status/cause.h"
#include "common/status/utf8.h"

namespace tributary {

// gRPC and Abseil use the same status codes. The detail comes along.
inline absl::Status ToAbslStatus(const grpc::Status& status) {
  const absl::Status plain(static_cast<absl::StatusCode>(status.error_code()),
                           status.error_message());
  v1::ErrorDetail detail;
  return status.error_details().empty() ||
                 !detail.ParseFromString(status.error_details())
             ? plain
             : WithDetail(plain, detail);
}

// Limit of a status message. It travels as metadata, of which a peer accepts 8
// KiB; beyond that, gRPC would replace the whole status by one with another
// code. Each byte that is not ASCII takes three.
inline constexpr size_t kMaxStatusBytes = 1024;

inline grpc::Status ToGrpcStatus(const absl::Status& status) {
  const v1::ErrorDetail detail = DetailOf(status);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(CutUtf8(status.message(), kMaxStatusBytes)),
                      detail.ByteSizeLong() <= kMaxStatusBytes
                          ? detail.SerializeAsString()
                          : "");
}

}  // namespace tributary
