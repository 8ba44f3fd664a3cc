// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/safetensors.h"
#include "common/job/initial_tensors.h"
#include "common/job/validate/validate.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

absl::Status ValidateNoFile(const Places& places, const v1::ModelSpec& model) {
  for (const auto& [field, size] :
       {std::pair("rules", model.initialize_rules_size()),
        std::pair("unused", model.initialize_unused_size())}) {
    if (size == 0) continue;
    const std::string path = absl::StrCat("model.initialize_", field);
    return places.Error(path, path,
                        " is about the file of model.initialize_from, which "
                        "is missing");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateInitialWeights(const Places& places,
                                    const v1::JobSpec& job) {
  const std::string& file = job.model().initialize_from();
  if (file.empty()) return ValidateNoFile(places, job.model());
  const auto error = [&places](const absl::Status& status) {
    return places.Error("model.initialize_from",
                        "model.initialize_from: ", status.message());
  };
  const absl::StatusOr<SafetensorsReader> reader =
      SafetensorsReader::Open(file);
  if (!reader.ok()) return error(reader.status());
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::vector<int> sources,
      MatchInitialTensors(places, job.model(), reader->tensors()));
  for (const int source : sources) {
    if (source == kFromSeed) continue;
    const absl::Status type = reader->CheckType(source);
    if (!type.ok()) return error(type);
  }
  return absl::OkStatus();
}

}  // namespace tributary
