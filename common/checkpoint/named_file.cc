// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/named_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// The header that a file must have to belong to this manifest.
ShardFileHeader WantedHeader(const v1::CheckpointManifest& manifest,
                             PagedFileKind kind, int index) {
  const bool residual = kind == PagedFileKind::kResidual;
  ShardFileHeader header = {{.kind = kind,
                             .job_id = manifest.job_id(),
                             .lineage = manifest.lineage(),
                             .plan_epoch = manifest.plan_epoch(),
                             .shard = index,
                             .num_shards = residual ? manifest.residuals_size()
                                                    : manifest.files_size(),
                             .parameters = FromProto(manifest.parameters()),
                             .state_names = {}},
                            manifest.step()};
  if (!residual) {
    header.state_names = {manifest.state_names().begin(),
                          manifest.state_names().end()};
  }
  return header;
}

std::string TextOf(const ShardFileHeader& header) {
  return absl::StrCat(
      header.kind == PagedFileKind::kResidual ? "residual " : "shard ",
      header.shard, " of ", header.num_shards, " at step ", header.step,
      " of job ", header.job_id, ", plan epoch ", header.plan_epoch,
      ", lineage ", header.lineage);
}

// The manifest does not say how many steps changed nothing.
absl::Status CheckHeader(const ShardFile& file, ShardFileHeader wanted) {
  const ShardFileHeader& got = file.header();
  wanted.skipped_steps = got.skipped_steps;
  if (got == wanted) return absl::OkStatus();
  std::string difference = absl::StrCat(TextOf(wanted), ", got ", TextOf(got));
  if (TextOf(got) == TextOf(wanted)) {
    difference = got.state_names == wanted.state_names
                     ? "the parameters of the manifest, got others"
                     : "the optimizer states of the manifest, got others";
  }
  return file.file().MessageError(absl::StrCat("wants ", difference));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShardFile>> OpenNamed(
    const std::string& folder, const v1::CheckpointManifest& manifest,
    PagedFileKind kind, int index, bool compares) {
  const v1::CheckpointFile& named = kind == PagedFileKind::kResidual
                                        ? manifest.residuals(index)
                                        : manifest.files(index);
  const std::string path = absl::StrCat(folder, "/", named.name());
  const Comparing comparing = !compares                ? Comparing::kNothing
                              : named.sha256().empty() ? Comparing::kChecksum
                                                       : Comparing::kDigest;
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<ShardFile> file,
                             ShardFile::Open(path, comparing, kind));
  if (static_cast<uint64_t>(file->file().bytes()) != named.bytes()) {
    return SizeError(path, file->file().bytes(), named.bytes());
  }
  TRIBUTARY_RETURN_IF_ERROR(
      CheckHeader(*file, WantedHeader(manifest, kind, index)));
  return file;
}

}  // namespace tributary
