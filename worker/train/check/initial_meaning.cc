// SPDX-License-Identifier: Apache-2.0
#include "worker/train/check/initial_meaning.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "common/files/safetensors.h"
#include "common/files/sha256.h"
#include "common/job/initial_tensors.h"
#include "common/job/sources/source_kind.h"
#include "common/layers/model_parameters.h"
#include "common/model_record/model_difference.h"
#include "common/model_record/model_record.h"
#include "common/model_record/recorded_meaning.h"
#include "common/model_record/run_weights.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

using Names = std::vector<std::string>;

constexpr char kField[] = "model.initialize_from";
constexpr char kTrainingData[] = "the training data";

// "2" of "2.weight".
std::string LayerOf(const ParameterSpec& parameter) {
  return parameter.name.substr(0, parameter.name.rfind('.'));
}

// The layers that start with tensors of the file, among those whose weights
// depend on the order of inputs, of tokens and of outputs.
struct Taken {
  Names inputs, tokens, outputs;
};

bool IsMatrix(const ParameterSpec& parameter) {
  return parameter.shape.size() >= 2;
}

// A parameter whose name is cut at its dots, as {"2", "body", "0", "weight"}.
struct NamedParts {
  const ParameterSpec* parameter;
  bool is_taken;  // starts with a tensor of the file
  Names parts;
};

void AddLayer(const ParameterSpec& parameter, Names* layers) {
  if (layers->empty() || layers->back() != LayerOf(parameter)) {
    layers->push_back(LayerOf(parameter));
  }
}

// Returns the parameters of one layer, or of one branch of a residual: those
// whose name has `part` at `depth`.
std::vector<NamedParts> With(absl::Span<const NamedParts> all, size_t depth,
                             const std::string& part) {
  std::vector<NamedParts> found;
  for (const NamedParts& one : all) {
    if (one.parts.size() > depth && one.parts[depth] == part) {
      found.push_back(one);
    }
  }
  return found;
}

// Adds the taken layers of a sequence, from its front or its back up to the
// first matrix product, which mixes the values. Both branches of a residual get
// all values. Returns false if nothing mixes the values, as in a residual
// without a shortcut: then later layers also depend on their order. depth: the
// index of the part of a name that identifies the layer.
bool AddUntilMixed(absl::Span<const NamedParts> all, size_t depth,
                   bool from_front, Names* layers) {
  Names order;
  for (const NamedParts& one : all) {
    if (order.empty() || order.back() != one.parts[depth]) {
      order.push_back(one.parts[depth]);
    }
  }
  if (!from_front) std::reverse(order.begin(), order.end());
  for (const std::string& layer : order) {
    const std::vector<NamedParts> its = With(all, depth, layer);
    const auto body = With(its, depth + 1, "body");
    const auto shortcut = With(its, depth + 1, "shortcut");
    bool mixed = false;
    if (!body.empty() || !shortcut.empty()) {
      const bool first = AddUntilMixed(body, depth + 2, from_front, layers);
      mixed = AddUntilMixed(shortcut, depth + 2, from_front, layers) && first;
    } else {
      for (const NamedParts& one : its) {
        mixed |= IsMatrix(*one.parameter);
        if (one.is_taken) AddLayer(*one.parameter, layers);
      }
    }
    if (mixed) return true;
  }
  return false;
}

absl::StatusOr<Taken> TakenLayers(const v1::JobSpec& job,
                                  const Places& places) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      const SafetensorsReader reader,
      SafetensorsReader::Open(job.model().initialize_from()));
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::vector<int> sources,
      MatchInitialTensors(places, job.model(), reader.tensors()));
  const ParameterSpecs parameters = ModelParameters(job.model());
  const auto first = absl::c_find_if(parameters, IsMatrix);
  const auto last =
      std::find_if(parameters.rbegin(), parameters.rend(), IsMatrix);
  Taken taken;
  if (first == parameters.end()) return taken;
  std::vector<NamedParts> named;
  for (size_t p = 0; p < parameters.size(); ++p) {
    const ParameterSpec& parameter = parameters[p];
    const std::string layer = LayerOf(parameter);
    named.push_back({&parameter, sources[p] != kFromSeed,
                     absl::StrSplit(parameter.name, '.')});
    // An embedding has a row for each token, and so has a head.
    const bool is_head = IsMatrix(parameter) && layer == LayerOf(*last) &&
                         layer.find('.') == std::string::npos &&
                         parameter.shape[0] == first->shape[0];
    if (named.back().is_taken && (layer == LayerOf(*first) || is_head)) {
      AddLayer(parameter, &taken.tokens);
    }
  }
  AddUntilMixed(named, 0, /*from_front=*/true, &taken.inputs);
  AddUntilMixed(named, 0, /*from_front=*/false, &taken.outputs);
  return taken;
}

// "start these tensors from the seed, as in model.initialize_rules: ...".
std::string FreshText(const Names& layers) {
  return absl::StrCat(
      "start these tensors from the seed, as in model.initialize_rules: "
      "[{tensors: [",
      absl::StrJoin(layers, ", ",
                    [](std::string* text, const std::string& layer) {
                      absl::StrAppend(text, layer, ".*");
                    }),
      "], fresh: true}]");
}

std::string ListText(const Names& names) {
  return absl::StrCat("[",
                      absl::StrJoin(names, ", ",
                                    [](std::string* text, const auto& name) {
                                      absl::StrAppend(text, Quoted(name));
                                    }),
                      "]");
}

// The layers that depend on the places of names, and what to do if a name has
// moved.
struct Remedy {
  Names Taken::*layers;
  std::string text;
};

Remedy RemedyOf(const PlacedNames& names, const v1::JobSpec& job,
                bool has_class_names) {
  constexpr size_t kMostListed = 8;
  switch (names.kind) {
    case PlacedNames::Kind::kToken:
      return {&Taken::tokens, "train on a text with the same tokens,"};
    case PlacedNames::Kind::kInput:
      return {&Taken::inputs,
              "put the columns into the order of that file with "
              "data.train.csv.columns,"};
    case PlacedNames::Kind::kClass:
      break;
  }
  return {&Taken::outputs,
          absl::StrCat(
              "set data.train.", SourceKey(job.data().train()), ".classes to ",
              names.before.size() <= kMostListed ? ListText(names.before)
              : has_class_names ? "the preprocessing.class_names of that file"
                                : "the numbers from 0 on",
              ", if these are all,")};
}

}  // namespace

absl::Status CheckInitialFile(const v1::JobSpec& job, const Places& places) {
  const std::string& file = job.model().initialize_from();
  std::string run;
  const absl::StatusOr<v1::ModelRecord> record = RecordBeside(file, &run);
  if (!record.ok()) return absl::OkStatus();
  std::string recorded;
  std::error_code error;
  for (const char* name : {kBestWeightsFile, kLastWeightsFile}) {
    if (std::filesystem::equivalent(run + name, file, error)) {
      recorded = RecordedWeightsSha256(run, name == kBestWeightsFile);
    }
  }
  if (recorded.empty()) return absl::OkStatus();
  ParameterSpecs specs;
  for (const v1::ParameterRecord& parameter : record->parameters()) {
    specs.push_back(
        {.name = parameter.name(),
         .shape = {parameter.shape().begin(), parameter.shape().end()}});
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const SafetensorsReader reader,
                             SafetensorsReader::Open(file));
  const absl::StatusOr<std::string> found = WeightsSha256(reader, specs);
  if (absl::IsDataLoss(found.status())) return found.status();
  if (found.ok() && *found == recorded) return absl::OkStatus();
  return places.Error(kField, kField, ": ", file, " has changed since the run ",
                      run,
                      ": its weights are not those that model.json records; to "
                      "start from it as it is, copy it into another folder");
}

absl::Status CheckInitialMeaning(const v1::JobSpec& job, const Places& places,
                                 const v1::Preprocessing& preprocessing) {
  if (job.model().initialize_from().empty()) return absl::OkStatus();
  std::string run;
  const absl::StatusOr<v1::ModelRecord> record =
      RecordBeside(job.model().initialize_from(), &run);
  if (!record.ok()) return absl::OkStatus();  // the file is not of a run
  for (const PlacedNames& names : PlacedNamesOf(
           *record, OutputKindOf(job.training().loss()), preprocessing)) {
    const auto moved = FirstMoved(names.before, names.now);
    if (!moved) continue;
    TRIBUTARY_ASSIGN_OR_RETURN(const Taken taken, TakenLayers(job, places));
    const bool has_names = record->preprocessing().class_names_size() > 0;
    const Remedy remedy = RemedyOf(names, job, has_names);
    const Names& layers = taken.*remedy.layers;
    if (layers.empty()) continue;
    return places.Error(
        kField, kField, ": ",
        MovedText(names, *moved, kTrainingData, absl::StrCat(run, kModelFile)),
        "; ", remedy.text, " or ", FreshText(layers));
  }
  return absl::OkStatus();
}

std::string InitialScaleWarning(const v1::JobSpec& job,
                                const v1::Preprocessing& preprocessing) {
  if (job.model().initialize_from().empty()) return "";
  std::string run;
  const absl::StatusOr<v1::ModelRecord> record =
      RecordBeside(job.model().initialize_from(), &run);
  if (!record.ok()) return "";
  const std::string there = absl::StrCat(run, kModelFile);
  std::string difference =
      ScaleDifference(*record, preprocessing, kTrainingData, there);
  const bool scaled = !difference.empty();
  if (!scaled) {
    difference = FillDifference(record->training_data().source(),
                                job.data().train(), kTrainingData, there);
  }
  if (difference.empty()) return "";
  const absl::StatusOr<Taken> taken = TakenLayers(job, Places());
  if (!taken.ok() || taken->inputs.empty()) return "";
  return absl::StrCat(kField, ": ", difference,
                      ", so the weights that it starts with do not fit these "
                      "inputs; use the same data.train.",
                      SourceKey(job.data().train()),
                      scaled ? ".normalize" : ".missing", " as that run");
}

}  // namespace tributary
