// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/restore.h"

#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/manifest.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr char kUnreadable[] = "tributary/unreadable-checkpoint";

absl::Status CheckIsOf(const v1::CheckpointManifest& manifest,
                       const v1::Plan& plan) {
  if (LineageOf(manifest) == plan.lineage() &&
      manifest.step() == plan.start_step()) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      ManifestPath(plan.restore_from()), ": wants step ", plan.start_step(),
      " of lineage ", plan.lineage(), ", got step ", manifest.step(),
      " of lineage ", LineageOf(manifest)));
}

}  // namespace

absl::Status Unreadable(absl::Status status) {
  if (absl::IsNotFound(status) || absl::IsDataLoss(status)) {
    status.SetPayload(kUnreadable, absl::Cord());
  }
  return status;
}

bool IsUnreadable(const absl::Status& status) {
  return status.GetPayload(kUnreadable).has_value();
}

absl::StatusOr<std::shared_ptr<const CheckpointReader>> OpenToRestore(
    const v1::Plan& plan, int member, int members, const std::string& key) {
  absl::StatusOr<std::unique_ptr<CheckpointReader>> reader =
      CheckpointReader::Open(plan.restore_from(),
                             {.part = member, .parts = members}, key);
  if (!reader.ok()) return Unreadable(reader.status());
  TRIBUTARY_RETURN_IF_ERROR(Unreadable(CheckIsOf((*reader)->manifest(), plan)));
  return std::shared_ptr<const CheckpointReader>(*std::move(reader));
}

absl::StatusOr<std::unique_ptr<const ResidualFile>> OpenResidualToRestore(
    const v1::Plan& plan, int rank, std::string* why, const std::string& key) {
  const absl::StatusOr<v1::CheckpointManifest> manifest =
      ReadManifest(plan.restore_from(), key);
  if (!manifest.ok()) return Unreadable(manifest.status());
  TRIBUTARY_RETURN_IF_ERROR(Unreadable(CheckIsOf(*manifest, plan)));
  *why = WhyNoResiduals(*manifest, plan);
  if (!why->empty()) return std::unique_ptr<const ResidualFile>();
  auto file = ResidualFile::Open(plan.restore_from(), *manifest, rank);
  if (!file.ok()) return Unreadable(file.status());
  return file;
}

absl::StatusOr<CheckpointInfo> OlderWholeCheckpoint(
    const std::string& directory, uint64_t lineage, int64_t from_step,
    int64_t below_step, const std::string& key) {
  TRIBUTARY_ASSIGN_OR_RETURN(std::vector<CheckpointInfo> found,
                             ListCheckpoints(directory));
  for (CheckpointInfo& info : found) {
    if (info.complete() && info.lineage == lineage && info.step >= from_step &&
        info.step < below_step && IsWhole(VerifyCheckpoint(info.path, key))) {
      return std::move(info);
    }
  }
  return absl::NotFoundError(absl::StrCat(
      directory, ": holds no intact checkpoint before step ", below_step));
}

}  // namespace tributary
