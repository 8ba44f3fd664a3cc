// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tributary/v1/checkpoint.pb.h"

namespace tributary {

std::string ManifestPath(const std::string& folder);

// Files of earlier versions name no lineage; theirs is the job's id.
uint64_t LineageOf(const v1::CheckpointManifest& manifest);

// All files that it names: those of the shards, then the residuals.
std::vector<v1::CheckpointFile> FilesOf(const v1::CheckpointManifest& manifest);

// InvalidArgument, with the reason, when the manifest contradicts itself: no or
// too many files, names that differ from FileNameOf, a residual for some ranks
// alone, impossible parameters, states or steps.
absl::Status CheckManifest(const v1::CheckpointManifest& manifest);

// Reads folder/manifest.ckpt and checks it, but not the files that it names.
// NotFound: there is none. DataLoss with path and byte: it is damaged.
// FailedPrecondition: a newer version wrote it.
absl::StatusOr<v1::CheckpointManifest> ReadManifest(const std::string& folder);
// The same for a file in memory; errors contain `name`.
absl::StatusOr<v1::CheckpointManifest> ParseManifest(const std::string& name,
                                                     absl::string_view bytes);

}  // namespace tributary
