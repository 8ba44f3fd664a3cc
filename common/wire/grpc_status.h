#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace tributary {

// The two status types share their codes.
inline absl::Status ToAbslStatus(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}
inline grpc::Status ToGrpcStatus(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()));
}

}  // namespace tributary
