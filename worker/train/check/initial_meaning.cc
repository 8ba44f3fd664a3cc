// SPDX-License-Identifier: Apache-2.0
#include "worker/train/check/initial_meaning.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
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

// The names of classes that are numbers: "0", "1", ...
Names Numbers(size_t count) {
  Names names;
  for (size_t i = 0; i < count; ++i) names.push_back(absl::StrCat(i));
  return names;
}

// "e" or "U+00E9"; of bytes likewise.
Names RecordedTokens(const v1::Preprocessing& preprocessing) {
  Names names;
  for (const int32_t token : preprocessing.text().vocabulary()) {
    const bool printable = token > 0x20 && token < 0x7F;
    names.push_back(printable ? std::string(1, static_cast<char>(token))
                              : absl::StrFormat("U+%04X", token));
  }
  return names;
}

// The name of each input: the column's or, for a category, "column=category".
// by_place: a column without a name has its position instead, as in "#2".
Names RecordedInputs(const v1::Preprocessing& preprocessing, bool by_place) {
  const auto name_of = [by_place](const v1::CsvColumn& column) {
    if (!column.name().empty()) return column.name();
    return by_place ? absl::StrCat("#", column.index()) : std::string();
  };
  Names names;
  for (const v1::CsvColumn& column : preprocessing.csv().numeric()) {
    names.push_back(name_of(column));
  }
  for (const v1::CsvCategories& one : preprocessing.csv().categorical()) {
    const std::string column = name_of(one.column());
    for (const std::string& category : one.categories()) {
      names.push_back(column.empty() ? ""
                                     : absl::StrCat(column, "=", category));
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

// Those of one layer, or of one branch of a residual.
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

// Adds the taken layers of a sequence from its side, up to the first product,
// which mixes the values. Both branches of a residual get all values. False:
// the order of the values also counts behind these layers, because nothing
// mixes them, as in a residual without a shortcut. depth: the part of a name
// that tells the layer.
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

// "start the tensors ["0.*"] from the seed with a rule of ...".
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

// Names whose places decide what weights mean.
struct Meaning {
  const char* what;
  Names before, now;     // of the run and of the training data, by place
  Names Taken::*layers;  // that depend on the places
  std::string so;        // what follows from another place, and a remedy
};

// "class 0 is "v" in the training data, which is class 1 in RUN/model.json".
std::string MovedText(const Meaning& meaning, size_t at,
                      const std::string& run) {
  const std::string& name = meaning.now[at];
  const auto found = absl::c_find(meaning.before, name);
  return absl::StrCat(meaning.what, " ", at, " is ", Quoted(name),
                      " in the training data, which is ", meaning.what, " ",
                      found - meaning.before.begin(), " in ", run, kModelFile);
}

// The record of the run that the weights are of: in their folder, or in that of
// the file to which a link leads. `run` gets the folder.
absl::StatusOr<v1::ModelRecord> RecordBeside(const std::string& weights,
                                             std::string* run) {
  const std::filesystem::path file(weights);
  *run = file.parent_path().string();
  absl::StatusOr<v1::ModelRecord> record = ReadModelRecord(*run);
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(file, error);
  if (!absl::IsNotFound(record.status()) || error) return record;
  *run = target.parent_path().string();
  return ReadModelRecord(*run);
}

// Whether the rows have classes and a label is the name of one. A label of npy
// or idx is only a position.
bool NamesClasses(v1::OutputKind output, absl::string_view source) {
  return output != v1::OUTPUT_KIND_NUMBERS && source == "csv";
}

}  // namespace

absl::Status CheckInitialMeaning(const v1::JobSpec& job, const Places& places,
                                 const v1::Preprocessing& preprocessing) {
  constexpr size_t kMostListed = 8;
  if (job.model().initialize_from().empty()) return absl::OkStatus();
  std::string run;
  const absl::StatusOr<v1::ModelRecord> record =
      RecordBeside(job.model().initialize_from(), &run);
  if (!record.ok()) return absl::OkStatus();  // the weights are of no run
  const v1::Preprocessing& before = record->preprocessing();
  const bool by_place = before.csv().columns() == preprocessing.csv().columns();
  Names classes = RecordedClasses(before);
  Names classes_now = RecordedClasses(preprocessing);
  if (NamesClasses(record->output(), before.source()) &&
      NamesClasses(OutputKindOf(job.training().loss()),
                   preprocessing.source())) {
    if (classes.empty()) classes = Numbers(classes_now.size());
    if (classes_now.empty()) classes_now = Numbers(classes.size());
  }
  const Meaning meanings[] = {
      {"class", classes, classes_now, &Taken::outputs,
       absl::StrCat(
           "its output would be that of another class; set data.train.",
           SourceKey(job.data().train()), ".classes to ",
           classes.size() <= kMostListed ? ListText(classes)
           : before.class_names().empty()
               ? "the numbers from 0 on"
               : "the preprocessing.class_names of that file",
           ", if these are all,")},
      {"token", RecordedTokens(before), RecordedTokens(preprocessing),
       &Taken::tokens,
       "texts would be read as others; train on a text with the same tokens,"},
      {"input", RecordedInputs(before, by_place),
       RecordedInputs(preprocessing, by_place), &Taken::inputs,
       "it would be taken for another one; put the columns into the order of "
       "that file with data.train.csv.columns,"}};
  for (const Meaning& meaning : meanings) {
    const auto moved = FirstMoved(meaning.before, meaning.now);
    if (!moved) continue;
    TRIBUTARY_ASSIGN_OR_RETURN(const Taken taken, TakenLayers(job, places));
    const Names& layers = taken.*meaning.layers;
    if (layers.empty()) continue;
    return places.Error(kField, kField, ": ", MovedText(meaning, *moved, run),
                        ", so ", meaning.so, " or ", FreshText(layers));
  }
  return absl::OkStatus();
}

}  // namespace tributary
