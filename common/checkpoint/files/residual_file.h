// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/checkpoint/files/shard_file.h"
#include "tributary/v1/checkpoint.pb.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// The residuals in a checkpoint: what the encodings of each rank's gradients
// had left out after its step. Each rank has a file of its own, with whole
// parameters of the plan and no optimizer states.

// The files that `rank` writes under this plan.
ShardFileSeries ResidualSeriesOf(const v1::Plan& plan, int rank);

// Returns why the ranks of `plan` begin with zeros instead of the checkpoint's
// residuals, such as "the checkpoint has none". Empty: each rank reads its
// file. The answer is the same for all ranks.
std::string WhyNoResiduals(const v1::CheckpointManifest& manifest,
                           const v1::Plan& plan);

// A rank's residual open for reading.
class ResidualFile {
 public:
  // Opens the file of a rank that the manifest of `folder` names. NotFound: it
  // is missing. DataLoss, with path and byte: it is damaged, another file, or
  // does not hold whole parameters, each once.
  static absl::StatusOr<std::unique_ptr<const ResidualFile>> Open(
      const std::string& folder, const v1::CheckpointManifest& manifest,
      int rank);

  // Fills residuals[p] with all elements of parameter p; null: the rank pushes
  // no gradient of p. Then compares the whole file's sums with the manifest's.
  // DataLoss: the file is damaged or does not hold these parameters.
  absl::Status Read(absl::Span<float* const> residuals) const;

 private:
  ResidualFile(std::unique_ptr<ShardFile> file, FileSums sums)
      : file_(std::move(file)), sums_(std::move(sums)) {}
  absl::Status FindParameters();

  const std::unique_ptr<ShardFile> file_;
  const FileSums sums_;
  // By parameter; null: the file does not hold it.
  std::vector<const ShardFile::Range*> ranges_;
};

}  // namespace tributary
