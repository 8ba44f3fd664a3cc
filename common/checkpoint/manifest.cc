// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/manifest.h"

#include "absl/strings/str_cat.h"
#include "common/checkpoint/paged_file.h"
#include "common/checkpoint/shard_file.h"
#include "common/plan/plan_codec.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

using Files = google::protobuf::RepeatedPtrField<v1::CheckpointFile>;

absl::Status CheckFileNames(const v1::CheckpointManifest& manifest,
                            const Files& files, PagedFileKind kind) {
  for (int i = 0; i < files.size(); ++i) {
    const std::string wanted = FileNameOf({.kind = kind,
                                           .job_id = manifest.job_id(),
                                           .plan_epoch = manifest.plan_epoch(),
                                           .shard = i,
                                           .num_shards = files.size()});
    if (files[i].name() != wanted) {
      return absl::InvalidArgumentError(absl::StrCat(
          "wants file ", wanted, ", got ", Quoted(files[i].name())));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFiles(const v1::CheckpointManifest& manifest) {
  const int most = MaxFiles(PagedFileKind::kShard);
  if (manifest.files_size() < 1 || manifest.files_size() > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wants 1 to ", most, " files, got ", manifest.files_size()));
  }
  TRIBUTARY_RETURN_IF_ERROR(
      CheckFileNames(manifest, manifest.files(), PagedFileKind::kShard));
  if (manifest.residuals().empty()) return absl::OkStatus();
  if (manifest.residuals_size() != manifest.workers_size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wants the residuals of no or all ", manifest.workers_size(),
        " ranks, got ", manifest.residuals_size()));
  }
  return CheckFileNames(manifest, manifest.residuals(),
                        PagedFileKind::kResidual);
}

absl::StatusOr<v1::CheckpointManifest> FromFile(
    const absl::StatusOr<PagedFile>& file) {
  TRIBUTARY_RETURN_IF_ERROR(file.status());
  v1::CheckpointManifest manifest;
  if (!manifest.ParseFromString(file->message())) {
    return file->MessageError("wants a manifest, got something else");
  }
  if (file->data_bytes() > 0) {
    return file->MessageError("wants nothing behind the manifest");
  }
  if (const absl::Status status = CheckManifest(manifest); !status.ok()) {
    return file->MessageError(
        absl::StrCat("the manifest is impossible: ", status.message()));
  }
  return manifest;
}

}  // namespace

std::string ManifestPath(const std::string& folder) {
  return absl::StrCat(folder, "/manifest.ckpt");
}

std::vector<v1::CheckpointFile> FilesOf(
    const v1::CheckpointManifest& manifest) {
  std::vector<v1::CheckpointFile> files = {manifest.files().begin(),
                                           manifest.files().end()};
  files.insert(files.end(), manifest.residuals().begin(),
               manifest.residuals().end());
  return files;
}

uint64_t LineageOf(const v1::CheckpointManifest& manifest) {
  return manifest.lineage() != 0 ? manifest.lineage() : manifest.job_id();
}

absl::Status CheckManifest(const v1::CheckpointManifest& manifest) {
  if (manifest.step() < 0 || manifest.total_steps() < 0 ||
      manifest.steps_per_epoch() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wants steps of 0 or more, got step ", manifest.step(), " of ",
        manifest.total_steps(), ", ", manifest.steps_per_epoch(), " an epoch"));
  }
  for (int rank = 0; rank < manifest.workers_size(); ++rank) {
    if (manifest.workers(rank).steps() < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("wants steps of 0 or more for rank ", rank, ", got ",
                       manifest.workers(rank).steps()));
    }
  }
  const std::vector<std::string> state_names = {manifest.state_names().begin(),
                                                manifest.state_names().end()};
  TRIBUTARY_RETURN_IF_ERROR(
      CheckTensorNames(FromProto(manifest.parameters()), state_names));
  return CheckFiles(manifest);
}

absl::StatusOr<v1::CheckpointManifest> ReadManifest(const std::string& folder) {
  return FromFile(
      PagedFile::Open(ManifestPath(folder), PagedFileKind::kManifest));
}

absl::StatusOr<v1::CheckpointManifest> ParseManifest(const std::string& name,
                                                     absl::string_view bytes) {
  return FromFile(PagedFile::Parse(name, bytes, PagedFileKind::kManifest));
}

}  // namespace tributary
