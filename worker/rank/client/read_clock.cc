// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/read_clock.h"

#include <grpcpp/client_context.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/host/steady_waits.h"
#include "common/status/cause.h"
#include "common/wire/blocking_call.h"
#include "common/wire/channel.h"
#include "common/wire/deadline.h"
#include "common/wire/header_checksum.h"
#include "common/wire/retry_policy.h"

namespace tributary {
namespace {

constexpr char kReadClock[] = "/tributary.v1.ParameterService/ReadClock";

}  // namespace

absl::StatusOr<v1::ClockResponse> ReadClock(const std::string& server,
                                            const v1::ClockRequest& request,
                                            absl::Duration deadline,
                                            TransferRound* round) {
  const auto channel =
      DataChannel(server, round->proof().ForChannel(PeerRole::kServer));
  while (true) {
    grpc::ClientContext context;
    context.set_deadline(DeadlineAfter(TransferLedger::kProgressTimeout));
    round->proof().AddTo(&context);
    v1::ClockResponse response;
    absl::Status status =
        BlockingCall(channel, kReadClock, &context, request, &response);
    if (status.ok()) status = CheckHeader(response);
    if (status.ok()) return response;
    if (round->Stopped()) {
      return absl::CancelledError(absl::StrCat("clock of server ", server));
    }
    if (RetryPolicy::After(status, deadline - SteadyNow()) !=
        RetryPolicy::Next::kRetry) {
      return absl::Status(
          status.code(),
          absl::StrCat("clock of server ", server, ": ", status.message()));
    }
    round->TellWaitingFor(
        WaitForServer(absl::StrCat("server ", server, ": ", status.message()),
                      static_cast<int>(request.address().shard())));
    absl::SleepFor(TransferLedger::kProgressPause);
  }
}

}  // namespace tributary
