// SPDX-License-Identifier: Apache-2.0
#include "worker/train/check/class_order.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files/safetensors.h"
#include "common/job/initial_tensors.h"
#include "common/job/sources/source_kind.h"
#include "common/layers/model_parameters.h"
#include "common/model_record/model_record.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

using Names = std::vector<std::string>;

Names NamesOf(const v1::Preprocessing& preprocessing) {
  return {preprocessing.class_names().begin(),
          preprocessing.class_names().end()};
}

Names Sorted(Names names) {
  std::sort(names.begin(), names.end());
  return names;
}

// "2" of "2.weight".
std::string LayerOf(const ParameterSpec& parameter) {
  return parameter.name.substr(0, parameter.name.rfind('.'));
}

// Whether a parameter of the last layer that has some is in the file.
absl::StatusOr<bool> TakesLastLayer(const v1::JobSpec& job,
                                    const Places& places) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      const SafetensorsReader reader,
      SafetensorsReader::Open(job.model().initialize_from()));
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::vector<int> sources,
      MatchInitialTensors(places, job.model(), reader.tensors()));
  const ParameterSpecs parameters = ModelParameters(job.model());
  for (size_t p = 0; p < parameters.size(); ++p) {
    if (sources[p] != kFromSeed &&
        LayerOf(parameters[p]) == LayerOf(parameters.back())) {
      return true;
    }
  }
  return false;
}

std::string ListText(const Names& names) {
  return absl::StrCat("[",
                      absl::StrJoin(names, ", ",
                                    [](std::string* text, const auto& name) {
                                      absl::StrAppend(text, Quoted(name));
                                    }),
                      "]");
}

}  // namespace

absl::Status CheckClassOrder(const v1::JobSpec& job, const Places& places,
                             const v1::Preprocessing& preprocessing) {
  constexpr char kField[] = "model.initialize_from";
  constexpr size_t kMostListed = 8;
  if (job.model().initialize_from().empty()) return absl::OkStatus();
  const std::string run = std::filesystem::path(job.model().initialize_from())
                              .parent_path()
                              .string();
  const absl::StatusOr<v1::ModelRecord> record = ReadModelRecord(run);
  if (!record.ok()) return absl::OkStatus();  // the weights are of no run
  const Names before = NamesOf(record->preprocessing());
  const Names now = NamesOf(preprocessing);
  if (before == now || Sorted(before) != Sorted(now)) return absl::OkStatus();
  TRIBUTARY_ASSIGN_OR_RETURN(const bool taken, TakesLastLayer(job, places));
  if (!taken) return absl::OkStatus();
  const size_t first = static_cast<size_t>(
      std::mismatch(before.begin(), before.end(), now.begin()).first -
      before.begin());
  return places.Error(
      kField, kField, ": class ", first, " is ", Quoted(before[first]), " in ",
      run, kModelFile, " and ", Quoted(now[first]),
      " in the training data, so the outputs would be those of other classes; "
      "set data.train.",
      SourceKey(job.data().train()), ".classes to ",
      before.size() <= kMostListed
          ? ListText(before)
          : "the preprocessing.class_names of that file",
      ", or start the last layer from the seed with a rule of "
      "model.initialize_rules");
}

}  // namespace tributary
