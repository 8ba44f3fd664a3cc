// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "cli/jobs/job_register.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Says how to continue a job whose coordinator has ended without a summary, as
// the last part of a sentence. `checkpoint_step`: of its newest checkpoint; 0:
// none is known. Empty: its run directory is not known. A pure function.
std::string ContinueText(const KnownJob& known, int64_t checkpoint_step);

// Whether a run directory that the register names is not there any more.
bool IsGoneDirectory(const std::string& run_directory);

// Checks the end of a job that was asked to stop and has left no summary.
// `title`: the job, as messages name it. `last`: its last known status.
// `checkpoint`: a checkpoint was asked for. DataLoss: its coordinator ran on
// this host and ended before the job was done. OK: it may have left its summary
// elsewhere, or none was to be expected. A pure function.
absl::Status CheckEndWithoutSummary(
    const std::string& title, const KnownJob& known,
    const std::optional<v1::JobStatusResponse>& last, bool checkpoint);

}  // namespace tributary
