// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/read_clock.h"

#include "absl/strings/str_cat.h"
#include "common/host/steady_waits.h"
#include "common/status/cause.h"
#include "common/status/status_macros.h"
#include "common/wire/header_checksum.h"
#include "common/wire/retry_policy.h"
#include "common/wire/tensor_frame.h"

namespace tributary {
namespace {

constexpr char kReadClock[] = "/tributary.v1.ParameterService/ReadClock";

absl::StatusOr<v1::ClockResponse> Ask(int shard,
                                      const v1::ClockRequest& request,
                                      CallQueue& calls) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      const grpc::ByteBuffer answer,
      calls.CallAndWait(shard, kReadClock, EncodeFrame(request, {}),
                        TransferLedger::kProgressTimeout));
  v1::ClockResponse response;
  Payload none;
  if (const absl::Status decoded = DecodeFrame(answer, &response, &none);
      !decoded.ok()) {
    return absl::DataLossError(decoded.message());
  }
  TRIBUTARY_RETURN_IF_ERROR(CheckHeader(response));
  return response;
}

}  // namespace

absl::StatusOr<v1::ClockResponse> ReadClock(const std::string& server,
                                            const v1::ClockRequest& request,
                                            absl::Duration deadline,
                                            TransferRound* round) {
  const int shard = static_cast<int>(request.address().shard());
  while (true) {
    absl::StatusOr<v1::ClockResponse> response =
        Ask(shard, request, round->calls(shard));
    if (response.ok()) return response;
    const absl::Status status = response.status();
    if (round->Stopped()) {
      return absl::CancelledError(absl::StrCat("clock of server ", server));
    }
    if (RetryPolicy::After(status, deadline - SteadyNow()) !=
        RetryPolicy::Next::kRetry) {
      return absl::Status(
          status.code(),
          absl::StrCat("clock of server ", server, ": ", status.message()));
    }
    round->TellWaitingFor(WaitForServer(
        absl::StrCat("server ", server, ": ", status.message()), shard));
    SleepSteadily(TransferLedger::kProgressPause);
  }
}

}  // namespace tributary
