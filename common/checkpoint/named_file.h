// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/checkpoint/files/shard_file.h"
#include "tributary/v1/checkpoint.pb.h"

namespace tributary {

// Opens file number `index` of this kind that the manifest of `folder` names:
// of a shard, or of a rank. DataLoss: it has another size or header than the
// manifest says, for example that of another step; other errors as
// ShardFile::Open.
absl::StatusOr<std::unique_ptr<ShardFile>> OpenNamed(
    const std::string& folder, const v1::CheckpointManifest& manifest,
    PagedFileKind kind, int index, bool compares);

}  // namespace tributary
