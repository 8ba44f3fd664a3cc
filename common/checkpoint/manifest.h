#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tributary/v1/checkpoint.pb.h"

namespace tributary {

std::string ManifestPath(const std::string& folder);

// Of a file of an earlier version, which names none, the job itself.
uint64_t LineageOf(const v1::CheckpointManifest& manifest);

// InvalidArgument, in a sentence, when the manifest contradicts itself: no or
// too many files, names that are not ShardFileName's, impossible parameters,
// states or steps.
absl::Status CheckManifest(const v1::CheckpointManifest& manifest);

// Reads folder/manifest.ckpt and checks it against itself, not the files it
// names. NotFound: there is none. DataLoss with the path and the byte: it is
// damaged. FailedPrecondition: it was written by a newer version.
absl::StatusOr<v1::CheckpointManifest> ReadManifest(const std::string& folder);
// The same for a file in memory; `name` stands in the errors.
absl::StatusOr<v1::CheckpointManifest> ParseManifest(const std::string& name,
                                                     absl::string_view bytes);

}  // namespace tributary
