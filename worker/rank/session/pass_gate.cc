// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/pass_gate.h"

#include "common/status/status_macros.h"

namespace tributary {

absl::Status TakeAskedCheckpoint(int64_t step, Member* member,
                                 GradientSynchronizer* synchronizer) {
  return member->TakeAskedCheckpoint(step)
             ? synchronizer->Checkpoint(step, /*best=*/false)
             : absl::OkStatus();
}

absl::Status PassGate(int64_t step, Member* member,
                      GradientSynchronizer* synchronizer) {
  const auto settle = [synchronizer] {
    const absl::Status settled = synchronizer->Settle();
    // To the caller Cancelled would mean that the job stops, not this plan.
    return absl::IsCancelled(settled)
               ? absl::UnavailableError(settled.message())
               : settled;
  };
  const absl::Status may_begin = member->BeginStep(step, settle);
  if (may_begin.ok() || absl::IsCancelled(may_begin)) {
    TRIBUTARY_RETURN_IF_ERROR(
        TakeAskedCheckpoint(step - 1, member, synchronizer));
  }
  return may_begin;
}

}  // namespace tributary
