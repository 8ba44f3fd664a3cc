// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tributary/v1/parameter_service.pb.h"
#include "worker/rank/client/transfer/transfer_round.h"

namespace tributary {

// Asks a server how far a rank's contributions have come. Retries while the
// server has no plan yet or cannot be reached, until `deadline` on SteadyNow's
// clock, and meanwhile tells `round` what it waits for. Cancelled: the round
// was stopped. Other errors name the server.
absl::StatusOr<v1::ClockResponse> ReadClock(const std::string& server,
                                            const v1::ClockRequest& request,
                                            absl::Duration deadline,
                                            TransferRound* round);

}  // namespace tributary
