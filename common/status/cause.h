// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tributary/v1/cause.pb.h"

namespace tributary {

// Attaches the part of an error that programs may read; gRPC carries it as well
// (ToGrpcStatus). No effect on an OK status.
absl::Status WithDetail(absl::Status status, const v1::ErrorDetail& detail);
absl::Status WithCause(absl::Status status, v1::Cause cause);

// Empty when the status has no detail, or one that cannot be read.
v1::ErrorDetail DetailOf(const absl::Status& status);
v1::Cause CauseOf(const absl::Status& status);

// "divergence", "full-disk"; empty: CAUSE_UNSPECIFIED.
std::string CauseName(v1::Cause cause);

// The same error with another message.
absl::Status WithMessage(const absl::Status& status, absl::string_view message);

// A wait that has only a text: what follows "waits for" in messages.
v1::Wait WaitFor(std::string text);
// A wait for an answer of the server with this index.
v1::Wait WaitForServer(std::string text, int server);
// A wait for other ranks. step: counted from 1; 0: the wait is in no step.
v1::Wait WaitForRanks(std::string text, const std::vector<uint32_t>& ranks,
                      int64_t step);

}  // namespace tributary
