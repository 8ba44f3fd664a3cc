// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_directory.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/files/residual_file.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// How the members of a job read the checkpoint that their plan starts from, and
// how the job reacts when they cannot.

// Opens the checkpoint of `plan` for one of its `members`. They share the work
// of comparing the files' checksums (CheckpointReader::CompareChecksums, once
// everything is read). `key`: as ReadManifest. Errors are marked by Unreadable,
// also for a checkpoint of another lineage or step.
absl::StatusOr<std::shared_ptr<const CheckpointReader>> OpenToRestore(
    const v1::Plan& plan, int member, int members, const std::string& key = "");

// Opens the residual of `rank` in the checkpoint of `plan`. Null: all ranks
// begin with zeros, for the reason *why (WhyNoResiduals). Errors as
// OpenToRestore.
absl::StatusOr<std::unique_ptr<const ResidualFile>> OpenResidualToRestore(
    const v1::Plan& plan, int rank, std::string* why,
    const std::string& key = "");

// Returns the error; marks NotFound and DataLoss as a fault of the checkpoint,
// so that an older one may still be readable.
absl::Status Unreadable(absl::Status status);
bool IsUnreadable(const absl::Status& status);

// The newest fully intact checkpoint of the lineage with from_step <= step <
// below_step. NotFound: there is none.
absl::StatusOr<CheckpointInfo> OlderWholeCheckpoint(
    const std::string& directory, uint64_t lineage, int64_t from_step,
    int64_t below_step, const std::string& key = "");

}  // namespace tributary
