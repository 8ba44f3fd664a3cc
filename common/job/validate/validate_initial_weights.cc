#include "absl/strings/str_cat.h"
#include "common/files/safetensors.h"
#include "common/job/validate/validate.h"
#include "common/layers/model_parameters.h"

namespace tributary {

absl::Status ValidateInitialWeights(const Places& places,
                                    const v1::JobSpec& job) {
  const std::string& file = job.model().initialize_from();
  if (file.empty()) return absl::OkStatus();
  const absl::StatusOr<SafetensorsReader> reader =
      SafetensorsReader::Open(file);
  if (!reader.ok()) {
    return places.Error("model.initialize_from",
                        "model.initialize_from: ", reader.status().message());
  }
  const absl::Status match =
      MatchTensors(*reader, ModelParameters(job.model()));
  if (match.ok()) return absl::OkStatus();
  return places.Error("model.initialize_from", "model.initialize_from: ", file,
                      ": ", match.message());
}

}  // namespace tributary
