#pragma once

#include "absl/status/status.h"

namespace tributary {

// Whether a call to a parameter server that ended so is made again. The first
// four are the server's words: not yet, damaged on the way, too late, too many.
// The others come from whatever stands between, when it resets a stream; a
// caller that has cancelled the call itself knows that.
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
