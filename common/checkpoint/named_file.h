// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/checkpoint/files/shard_file.h"
#include "tributary/v1/checkpoint.pb.h"

namespace tributary {

// Opens the file that the manifest of `folder` names for shard `index` or, for
// a kResidual, for rank `index`. DataLoss: the file's size or header differs
// from the manifest, for example in the step; other errors as ShardFile::Open.
absl::StatusOr<std::unique_ptr<ShardFile>> OpenNamed(
    const std::string& folder, const v1::CheckpointManifest& manifest,
    PagedFileKind kind, int index, bool compares);

}  // namespace tributary
