// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/command_line/telemetry_options.h"
#include "common/telemetry/http_listener.h"
#include "common/wire/identity/access.h"

namespace tributary {

// Returns who may read the pages of a process: those with the token of a file
// or of the process's parent, over TLS if other machines reach the address and
// the process has a certificate. Errors as ReadToken.
absl::StatusOr<PageAccess> ReadPageAccess(const TelemetryOptions& telemetry,
                                          const Access& access);

}  // namespace tributary
