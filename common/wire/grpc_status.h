#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"
#include "common/status/utf8.h"

namespace tributary {

// The two status types share their codes.
inline absl::Status ToAbslStatus(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

// A message travels as metadata, of which a peer takes 8 KiB: longer ones would
// be refused as a whole, with another code. Bytes beyond ASCII take three.
inline constexpr size_t kMaxStatusBytes = 1024;

inline grpc::Status ToGrpcStatus(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(CutUtf8(status.message(), kMaxStatusBytes)));
}

}  // namespace tributary
