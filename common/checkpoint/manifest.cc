// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/manifest.h"

#include "absl/strings/str_cat.h"
#include "common/checkpoint/files/folder_name.h"
#include "common/checkpoint/files/paged_file.h"
#include "common/checkpoint/files/shard_file.h"
#include "common/job/job_course.h"
#include "common/plan/plan_codec.h"
#include "common/security/hmac.h"
#include "common/security/secret.h"
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

// Keeps a manifest's HMAC apart from any other use of the key.
constexpr char kPurpose[] = "tributary checkpoint manifest 1";

std::string KeyedChecksum(absl::string_view message, const std::string& key) {
  return HmacSha256(key, absl::StrCat(kPurpose, message));
}

// The field keyed_checksum on its own, as it stands at the end of a message.
std::string ChecksumField(const std::string& checksum) {
  v1::CheckpointManifest field;
  field.set_keyed_checksum(checksum);
  return field.SerializeAsString();
}

absl::Status CheckKey(const PagedFile& file, const std::string& key) {
  const std::string& message = file.message();
  const size_t size = ChecksumField(KeyedChecksum("", key)).size();
  if (message.size() >= size) {
    const absl::string_view body =
        absl::string_view(message).substr(0, message.size() - size);
    if (EqualSecrets(ChecksumField(KeyedChecksum(body, key)),
                     absl::string_view(message).substr(body.size()))) {
      return absl::OkStatus();
    }
  }
  return file.MessageError(
      "the keyed checksum is missing or wrong: the checkpoint was written "
      "without this key, or somebody has changed it");
}

absl::StatusOr<v1::CheckpointManifest> FromFile(
    const absl::StatusOr<PagedFile>& file, const std::string& key = "") {
  TRIBUTARY_RETURN_IF_ERROR(file.status());
  if (!key.empty()) TRIBUTARY_RETURN_IF_ERROR(CheckKey(*file, key));
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
  TRIBUTARY_RETURN_IF_ERROR(manifest.course().empty()
                                ? absl::OkStatus()
                                : CourseFromProto(manifest.course()).status());
  const std::vector<std::string> state_names = {manifest.state_names().begin(),
                                                manifest.state_names().end()};
  TRIBUTARY_RETURN_IF_ERROR(
      CheckTensorNames(FromProto(manifest.parameters()), state_names));
  return CheckFiles(manifest);
}

absl::StatusOr<v1::CheckpointManifest> ReadManifest(const std::string& folder,
                                                    const std::string& key) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      v1::CheckpointManifest manifest,
      FromFile(PagedFile::Open(ManifestPath(folder), PagedFileKind::kManifest),
               key));
  // A copied folder must not count as a later checkpoint.
  if (const int64_t step = StepOfFolder(folder).value_or(manifest.step());
      step != manifest.step()) {
    return absl::DataLossError(absl::StrCat(ManifestPath(folder),
                                            ": byte 0: wants step ", step,
                                            ", got ", manifest.step()));
  }
  return manifest;
}

std::string SerializeManifest(v1::CheckpointManifest manifest,
                              const std::string& key) {
  manifest.clear_keyed_checksum();
  std::string message = manifest.SerializeAsString();
  if (!key.empty()) message += ChecksumField(KeyedChecksum(message, key));
  return message;
}

std::string CheckpointKeyId(const std::string& key) {
  return key.empty() ? "" : HmacSha256(key, "tributary checkpoint key 1");
}

FileSums SumsOf(const v1::CheckpointFile& file) {
  return {.crc32c = file.crc32c(), .sha256 = file.sha256()};
}

absl::StatusOr<v1::CheckpointManifest> ParseManifest(const std::string& name,
                                                     absl::string_view bytes) {
  return FromFile(PagedFile::Parse(name, bytes, PagedFileKind::kManifest));
}

}  // namespace tributary
