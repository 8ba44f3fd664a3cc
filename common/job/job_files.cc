// SPDX-License-Identifier: Apache-2.0
#include "common/job/job_files.h"

#include "common/status/status_macros.h"

namespace tributary {
namespace {

using Files = google::protobuf::RepeatedPtrField<std::string>;
using Visit = absl::FunctionRef<absl::Status(const std::string&, Files*)>;

absl::Status VisitSource(const std::string& place, v1::DataSource* source,
                         Visit visit) {
  switch (source->kind_case()) {
    case v1::DataSource::kIdx: {
      v1::IdxSource* idx = source->mutable_idx();
      TRIBUTARY_RETURN_IF_ERROR(
          visit(place + ".idx.images", idx->mutable_images()));
      return visit(place + ".idx.labels", idx->mutable_labels());
    }
    case v1::DataSource::kCsv:
      return visit(place + ".csv.path", source->mutable_csv()->mutable_path());
    case v1::DataSource::kNpy: {
      v1::NpySource* npy = source->mutable_npy();
      TRIBUTARY_RETURN_IF_ERROR(
          visit(place + ".npy.features", npy->mutable_features()));
      return visit(place + ".npy.labels", npy->mutable_labels());
    }
    case v1::DataSource::kText:
      return visit(place + ".text.path",
                   source->mutable_text()->mutable_path());
    case v1::DataSource::kSynthetic:
    case v1::DataSource::KIND_NOT_SET:
      break;
  }
  return absl::OkStatus();
}

}  // namespace

std::string SourceKind(const v1::DataSource& source) {
  const auto* field = source.GetReflection()->GetOneofFieldDescriptor(
      source, source.GetDescriptor()->oneof_decl(0));
  return field == nullptr ? "" : field->name();
}

absl::Status VisitDataFiles(v1::DataSpec* data, Visit visit) {
  if (data->has_train()) {
    TRIBUTARY_RETURN_IF_ERROR(
        VisitSource("data.train", data->mutable_train(), visit));
  }
  if (data->validation().has_source()) {
    TRIBUTARY_RETURN_IF_ERROR(
        VisitSource("data.validation.source",
                    data->mutable_validation()->mutable_source(), visit));
  }
  if (!data->has_test()) return absl::OkStatus();
  return VisitSource("data.test", data->mutable_test(), visit);
}

std::vector<std::string> FilesOfJob(const v1::JobSpec& job) {
  std::vector<std::string> all;
  if (!job.model().initialize_from().empty()) {
    all.push_back(job.model().initialize_from());
  }
  v1::DataSpec data = job.data();
  VisitDataFiles(&data, [&all](const std::string&, Files* files) {
    all.insert(all.end(), files->begin(), files->end());
    return absl::OkStatus();
  }).IgnoreError();  // the visitor never fails
  return all;
}

}  // namespace tributary
