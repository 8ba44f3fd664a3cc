// SPDX-License-Identifier: Apache-2.0
#include "worker/train/check/initial_meaning.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
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

constexpr char kField[] = "model.initialize_from";

Names RecordedClasses(const v1::Preprocessing& preprocessing) {
  return {preprocessing.class_names().begin(),
          preprocessing.class_names().end()};
}

Names RecordedTokens(const v1::Preprocessing& preprocessing) {
  Names names;
  for (const int32_t token : preprocessing.text().vocabulary()) {
    names.push_back(absl::StrCat(token));
  }
  return names;
}

// Of each input: the column's name or, of a category, "column=category". A
// column without a name has none.
Names RecordedInputs(const v1::Preprocessing& preprocessing) {
  Names names;
  for (const v1::CsvColumn& column : preprocessing.csv().numeric()) {
    names.push_back(column.name());
  }
  for (const v1::CsvCategories& one : preprocessing.csv().categorical()) {
    const std::string column = one.column().name().empty()
                                   ? absl::StrCat(one.column().index())
                                   : one.column().name();
    for (const std::string& category : one.categories()) {
      names.push_back(absl::StrCat(column, "=", category));
    }
  }
  return names;
}

// The first place of a name in `now` that has another place in `before`.
std::optional<size_t> FirstMoved(const Names& before, const Names& now) {
  absl::flat_hash_map<std::string, size_t> places;
  for (size_t i = 0; i < before.size(); ++i) places.try_emplace(before[i], i);
  for (size_t i = 0; i < now.size(); ++i) {
    const auto found = places.find(now[i]);
    if (!now[i].empty() && found != places.end() && found->second != i) {
      return i;
    }
  }
  return std::nullopt;
}

// "2" of "2.weight".
std::string LayerOf(const ParameterSpec& parameter) {
  return parameter.name.substr(0, parameter.name.rfind('.'));
}

// The first and the last layer that have parameters.
struct Taken {
  bool first = false;
  bool last = false;
};

// Whether a parameter of these is in the file.
absl::StatusOr<Taken> TakenLayers(const v1::JobSpec& job,
                                  const Places& places) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      const SafetensorsReader reader,
      SafetensorsReader::Open(job.model().initialize_from()));
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::vector<int> sources,
      MatchInitialTensors(places, job.model(), reader.tensors()));
  const ParameterSpecs parameters = ModelParameters(job.model());
  Taken taken;
  for (size_t p = 0; p < parameters.size(); ++p) {
    if (sources[p] == kFromSeed) continue;
    const std::string layer = LayerOf(parameters[p]);
    taken.first |= layer == LayerOf(parameters.front());
    taken.last |= layer == LayerOf(parameters.back());
  }
  return taken;
}

std::string ListText(const Names& names) {
  return absl::StrCat("[",
                      absl::StrJoin(names, ", ",
                                    [](std::string* text, const auto& name) {
                                      absl::StrAppend(text, Quoted(name));
                                    }),
                      "]");
}

// "class 0 is "u" in RUN/model.json and "v" in the training data, ...".
std::string MovedText(const std::string& what, const Names& before,
                      const Names& now, size_t at, const std::string& run) {
  const size_t old = static_cast<size_t>(
      std::find(before.begin(), before.end(), now[at]) - before.begin());
  return absl::StrCat(what, " ", at, " is ", Quoted(now[at]),
                      " in the training data, which is ", what, " ", old,
                      " in ", run, kModelFile);
}

}  // namespace

absl::Status CheckInitialMeaning(const v1::JobSpec& job, const Places& places,
                                 const v1::Preprocessing& preprocessing) {
  constexpr size_t kMostListed = 8;
  if (job.model().initialize_from().empty()) return absl::OkStatus();
  const std::string run = std::filesystem::path(job.model().initialize_from())
                              .parent_path()
                              .string();
  const absl::StatusOr<v1::ModelRecord> record = ReadModelRecord(run);
  if (!record.ok()) return absl::OkStatus();  // the weights are of no run
  const v1::Preprocessing& before = record->preprocessing();
  const Names classes = RecordedClasses(before),
              tokens = RecordedTokens(before), inputs = RecordedInputs(before);
  const Names own_classes = RecordedClasses(preprocessing),
              own_tokens = RecordedTokens(preprocessing),
              own_inputs = RecordedInputs(preprocessing);
  const auto moved_class = FirstMoved(classes, own_classes);
  const auto moved_token = FirstMoved(tokens, own_tokens);
  const auto moved_input = FirstMoved(inputs, own_inputs);
  if (!moved_class && !moved_token && !moved_input) return absl::OkStatus();
  TRIBUTARY_ASSIGN_OR_RETURN(const Taken taken, TakenLayers(job, places));
  constexpr char kFresh[] =
      " layer from the seed with a rule of model.initialize_rules";
  if (moved_class && taken.last) {
    return places.Error(
        kField, kField, ": ",
        MovedText("class", classes, own_classes, *moved_class, run),
        ", so its output would be that of another class; set data.train.",
        SourceKey(job.data().train()), ".classes to ",
        classes.size() <= kMostListed
            ? ListText(classes)
            : "the preprocessing.class_names of that file",
        ", if these are all, or start the last", kFresh);
  }
  if (moved_token && (taken.first || taken.last)) {
    return places.Error(
        kField, kField, ": ",
        MovedText("token", tokens, own_tokens, *moved_token, run),
        " (code points or bytes), so texts would be read as others; train on "
        "a text with the same tokens, or start the first and the last",
        kFresh);
  }
  if (moved_input && taken.first) {
    return places.Error(
        kField, kField, ": ",
        MovedText("input", inputs, own_inputs, *moved_input, run),
        ", so it would be taken for another one; put the columns into the "
        "order of that file with data.train.csv.columns, or start the first",
        kFresh);
  }
  return absl::OkStatus();
}

}  // namespace tributary
