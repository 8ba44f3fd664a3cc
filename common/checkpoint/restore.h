#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_directory.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// How the members of a job read the checkpoint that their plan begins with, and
// what becomes of the job when they cannot.

// The checkpoint of `plan`, open for one of its `members`, who share the files
// whose checksums are compared (CheckpointReader::CompareChecksums, once all is
// read). Errors as Unreadable: it is of another lineage or step, too.
absl::StatusOr<std::shared_ptr<const CheckpointReader>> OpenToRestore(
    const v1::Plan& plan, int member, int members);

// The same error; NotFound and DataLoss are marked as the checkpoint's fault:
// an older one may still be read.
absl::Status Unreadable(absl::Status status);
bool IsUnreadable(const absl::Status& status);

// The newest checkpoint of the lineage, of a step from `from_step` to below
// `below_step`, of which every byte is as it was written. NotFound: there is
// none.
absl::StatusOr<CheckpointInfo> OlderWholeCheckpoint(
    const std::string& directory, uint64_t lineage, int64_t from_step,
    int64_t below_step);

}  // namespace tributary
