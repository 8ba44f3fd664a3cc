// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/session.h"

#include "common/member/submit_job.h"
#include "common/status/status_macros.h"
#include "worker/rank/session/program/program_session.h"

namespace tributary {

absl::StatusOr<std::unique_ptr<Session>> Session::Join(Options options) {
  TRIBUTARY_RETURN_IF_ERROR(SubmitJob(options.coordinator, options.settings,
                                      options.join_timeout,
                                      options.access.Proof()));
  return ProgramSession::Create(std::move(options));
}

}  // namespace tributary
