#pragma once

#include "absl/status/status.h"

namespace tributary {

// Whether a call to a parameter server that ended with this status is retried.
// The server sends the first four: not ready, damaged in transit, too late, too
// many calls. The others come from proxies and gRPC when a stream is reset. A
// caller that cancelled the call itself must check that first.
inline bool Repeatable(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return true;
    default:
      return false;
  }
}

}  // namespace tributary
