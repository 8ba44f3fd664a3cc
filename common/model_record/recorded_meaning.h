// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tributary/v1/model_record.pb.h"
#include "tributary/v1/preprocessing.pb.h"

namespace tributary {

// Names whose places decide what weights mean. `before` has the names of the
// run that made the weights, `now` those of the data or run that uses them.
struct PlacedNames {
  enum class Kind { kClass, kToken, kInput };
  Kind kind;
  std::vector<std::string> before, now;
};

// The names of each kind. A name is empty if it is not known. `output`: that of
// the model of `now`. Labels that are numbers count as names of classes if both
// sources are tables.
std::vector<PlacedNames> PlacedNamesOf(const v1::ModelRecord& before,
                                       v1::OutputKind output,
                                       const v1::Preprocessing& now);

// The first place in `now` of a name that has another place in `before`.
std::optional<size_t> FirstMoved(const std::vector<std::string>& before,
                                 const std::vector<std::string>& now);

// "class 0 is "v" in HERE, which is class 1 in THERE, so its output would be
// that of another class". `there`: the file of names.before.
std::string MovedText(const PlacedNames& names, size_t at,
                      absl::string_view here, absl::string_view there);

// Reads the record of the run that made a file of weights: from the file's
// folder or, if `weights` is a link, from the folder of the file to which it
// leads. `run` gets the folder.
absl::StatusOr<v1::ModelRecord> RecordBeside(const std::string& weights,
                                             std::string* run);

// Says which numeric inputs are scaled so differently in two runs that weights
// of one give wrong results in the other, as in "input 0 ("x") is (x - 40) / 10
// in THERE, but x in HERE". Empty: no input is; two tables may have slightly
// different means and deviations. Inputs with other names are not compared.
std::string ScaleDifference(const v1::ModelRecord& before,
                            const v1::Preprocessing& now,
                            absl::string_view here, absl::string_view there);

// InvalidArgument when `weights` lies beside the model.json of another run, and
// its classes, tokens or inputs have other names than those of `record`, the
// model.json of `run`, or the two differ by ModelDifference, ScaleDifference or
// FillDifference. OK, too, when there is no such record, because nothing is
// known then.
absl::Status CheckWeightsMeaning(const std::string& weights,
                                 const v1::ModelRecord& record,
                                 const std::string& run);

}  // namespace tributary
