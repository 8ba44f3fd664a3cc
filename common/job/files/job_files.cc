// SPDX-License-Identifier: Apache-2.0
#include "common/job/files/job_files.h"

#include "absl/strings/str_cat.h"
#include "common/job/sources/source_kind.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

using Files = google::protobuf::RepeatedPtrField<std::string>;
using Visit = absl::FunctionRef<absl::Status(const std::string&, Files*)>;

absl::Status VisitSource(const std::string& place, v1::DataSource* source,
                         Visit visit) {
  const SourceKind* kind = KindOf(*source);
  if (kind == nullptr) return absl::OkStatus();
  for (const SourceKind::Files& list : kind->FilesOf(source)) {
    TRIBUTARY_RETURN_IF_ERROR(
        visit(absl::StrCat(place, ".", SourceKey(*source), ".", list.key),
              list.paths));
  }
  return absl::OkStatus();
}

}  // namespace

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
