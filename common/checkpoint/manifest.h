// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/files/paged_file.h"
#include "tributary/v1/checkpoint.pb.h"

namespace tributary {

std::string ManifestPath(const std::string& folder);

// Returns the lineage. Files of earlier versions name none: it is their job id.
uint64_t LineageOf(const v1::CheckpointManifest& manifest);

// Returns all files that the manifest names: the shards', then the residuals.
std::vector<v1::CheckpointFile> FilesOf(const v1::CheckpointManifest& manifest);

// InvalidArgument, with the reason, when the manifest contradicts itself: no or
// too many files, names that differ from FileNameOf, residuals for only some of
// the ranks, impossible parameters, states or steps.
absl::Status CheckManifest(const v1::CheckpointManifest& manifest);

// Reads folder/manifest.ckpt and checks it, but not the files that it names.
// NotFound: there is none. DataLoss with path and byte: it is damaged, or the
// folder has the name of another step.
// FailedPrecondition: a newer version wrote it. With a `key`, DataLoss also:
// the keyed checksum is missing or wrong.
absl::StatusOr<v1::CheckpointManifest> ReadManifest(
    const std::string& folder, const std::string& key = "");
// The same for a file in memory; errors contain `name`.
absl::StatusOr<v1::CheckpointManifest> ParseManifest(const std::string& name,
                                                     absl::string_view bytes);

// A manifest's message; with a `key`, its keyed checksum is the last field.
std::string SerializeManifest(v1::CheckpointManifest manifest,
                              const std::string& key);

// Returns an id that tells keys apart but does not reveal them; empty for an
// empty key.
std::string CheckpointKeyId(const std::string& key);

// The sums of a file that a manifest names.
FileSums SumsOf(const v1::CheckpointFile& file);

}  // namespace tributary
