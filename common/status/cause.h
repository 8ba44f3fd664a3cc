// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tributary/v1/cause.pb.h"

namespace tributary {

// Attaches what programs may read of an error, which gRPC carries as well
// (ToGrpcStatus). No effect on an OK status.
absl::Status WithDetail(absl::Status status, const v1::ErrorDetail& detail);
absl::Status WithCause(absl::Status status, v1::Cause cause);

// An empty one: the status has none, or one that cannot be read.
v1::ErrorDetail DetailOf(const absl::Status& status);
v1::Cause CauseOf(const absl::Status& status);

// "divergence", "full-disk"; empty: CAUSE_UNSPECIFIED.
std::string CauseName(v1::Cause cause);

// The same error with another message.
absl::Status WithMessage(const absl::Status& status, absl::string_view message);

// A wait of which there is no more to say than what follows "waits for".
v1::Wait WaitFor(std::string text);
// A wait for an answer of the server with this index.
v1::Wait WaitForServer(std::string text, int server);
// A wait for other ranks in a step, from 1; 0: in none.
v1::Wait WaitForRanks(std::string text, const std::vector<uint32_t>& ranks,
                      int64_t step);

}  // namespace tributary
