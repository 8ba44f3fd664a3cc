// SPDX-License-Identifier: Apache-2.0
#include "common/model_record/recorded_meaning.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/model_record/model_difference.h"
#include "common/model_record/model_record.h"
#include "common/status/quoted.h"

namespace tributary {
namespace {

using Names = std::vector<std::string>;

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

// The name of each token, "e" or "U+00E9", also when the tokens are bytes.
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

// True when the outputs are classes and each label of the data is the name of
// one. A label of npy or idx is only a position.
bool NamesClasses(v1::OutputKind output, absl::string_view source) {
  return output != v1::OUTPUT_KIND_NUMBERS && source == "csv";
}

const char* KindText(PlacedNames::Kind kind) {
  return kind == PlacedNames::Kind::kClass   ? "class"
         : kind == PlacedNames::Kind::kToken ? "token"
                                             : "input";
}

// Says what goes wrong when the name at a place is another one.
const char* EffectText(PlacedNames::Kind kind) {
  return kind == PlacedNames::Kind::kClass
             ? ", so its output would be that of another class"
         : kind == PlacedNames::Kind::kToken
             ? ", so texts would be read as others"
             : ", so it would be taken for another one";
}

// True when two names are certainly of different things. A column without a
// name, "#2", differs only from another column without a name.
bool AreOthers(const std::string& before, const std::string& now) {
  if (before.empty() || now.empty()) return false;
  return before != now && (before[0] == '#') == (now[0] == '#');
}

// "class 0 is "v" in HERE, but "w" in THERE, so ...".
std::string OtherText(const PlacedNames& names, size_t at,
                      absl::string_view here, absl::string_view there) {
  if (absl::c_linear_search(names.before, names.now[at])) {
    return MovedText(names, at, here, there);
  }
  return absl::StrCat(KindText(names.kind), " ", at, " is ",
                      Quoted(names.now[at]), " in ", here, ", but ",
                      Quoted(names.before[at]), " in ", there,
                      EffectText(names.kind));
}

// How a number x of a file becomes an input: (x / divisor - center) /
// deviation.
struct Scale {
  double divisor, center, deviation;
};

double ValueAt(const google::protobuf::RepeatedField<float>& values,
               int64_t feature, double if_none) {
  if (values.empty()) return if_none;
  return values.Get(values.size() == 1 ? 0 : static_cast<int>(feature));
}

Scale ScaleOf(const v1::NumericFeatures& numeric, int64_t feature) {
  const int offsets = numeric.offset_size();
  const double offset =
      offsets == 0
          ? 0
          : numeric.offset(offsets == 1 ? 0 : static_cast<int>(feature));
  return {.divisor = numeric.byte_divisor() == 0 ? 1 : numeric.byte_divisor(),
          .center = offset + ValueAt(numeric.mean(), feature, 0),
          .deviation = ValueAt(numeric.deviation(), feature, 1)};
}

std::string ScaleText(const Scale& scale) {
  std::string text =
      scale.divisor == 1 ? "x" : absl::StrCat("x / ", scale.divisor);
  if (scale.center == 0 && scale.deviation == 1) return text;
  return absl::StrCat("(", text, scale.center < 0 ? " + " : " - ",
                      std::abs(scale.center), ") / ", scale.deviation);
}

// True when the distance of the means, in units of the smaller deviation, or
// the ratio of the deviations is greater than it is in two tables of one kind.
bool AreFarApart(const Scale& a, const Scale& b, bool same_kind) {
  const double shift = same_kind ? 1 : 0.1;
  const double ratio = same_kind ? 4 : 1.1;
  const double a_deviation = a.deviation * a.divisor;
  const double b_deviation = b.deviation * b.divisor;
  const auto [least, most] = std::minmax(a_deviation, b_deviation);
  const double distance = std::abs(a.center * a.divisor - b.center * b.divisor);
  return most >= ratio * least || distance > shift * least;
}

}  // namespace

std::vector<PlacedNames> PlacedNamesOf(const v1::ModelRecord& before,
                                       v1::OutputKind output,
                                       const v1::Preprocessing& now) {
  const v1::Preprocessing& recorded = before.preprocessing();
  const bool by_place = recorded.csv().columns() == now.csv().columns();
  Names classes = RecordedClasses(recorded);
  Names classes_now = RecordedClasses(now);
  if (NamesClasses(before.output(), recorded.source()) &&
      NamesClasses(output, now.source())) {
    if (classes.empty()) classes = Numbers(classes_now.size());
    if (classes_now.empty()) classes_now = Numbers(classes.size());
  }
  return {
      {PlacedNames::Kind::kClass, std::move(classes), std::move(classes_now)},
      {PlacedNames::Kind::kToken, RecordedTokens(recorded),
       RecordedTokens(now)},
      {PlacedNames::Kind::kInput, RecordedInputs(recorded, by_place),
       RecordedInputs(now, by_place)}};
}

// The first place in `now` of a name that has another place in `before`.
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

std::string MovedText(const PlacedNames& names, size_t at,
                      absl::string_view here, absl::string_view there) {
  const char* kind = KindText(names.kind);
  const auto found = absl::c_find(names.before, names.now[at]);
  return absl::StrCat(kind, " ", at, " is ", Quoted(names.now[at]), " in ",
                      here, ", which is ", kind, " ",
                      found - names.before.begin(), " in ", there,
                      EffectText(names.kind));
}

absl::StatusOr<v1::ModelRecord> RecordBeside(const std::string& weights,
                                             std::string* run) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::absolute(weights, error);
  *run = file.parent_path().string();
  absl::StatusOr<v1::ModelRecord> record = ReadModelRecord(*run);
  const std::filesystem::path target = std::filesystem::canonical(file, error);
  if (!absl::IsNotFound(record.status()) || error) return record;
  *run = target.parent_path().string();
  return ReadModelRecord(*run);
}

std::string ScaleDifference(const v1::ModelRecord& before,
                            const v1::Preprocessing& now,
                            absl::string_view here, absl::string_view there) {
  const v1::NumericFeatures& was = before.preprocessing().numeric();
  const v1::NumericFeatures& is = now.numeric();
  const PlacedNames names =
      PlacedNamesOf(before, before.output(), now).back();  // kInput
  // If only one run divides bytes, the other's numbers usually are in the unit
  // that the division gives.
  const bool any_unit = (was.byte_divisor() == 0) != (is.byte_divisor() == 0);
  const bool same_kind = was.mean().empty() == is.mean().empty();
  std::string text;
  int64_t more = 0;
  for (int64_t i = 0; i < std::min(was.count(), is.count()); ++i) {
    const size_t at = static_cast<size_t>(i);
    const bool named = at < names.before.size() && at < names.now.size();
    if (named && AreOthers(names.before[at], names.now[at])) continue;
    Scale a = ScaleOf(was, i);
    Scale b = ScaleOf(is, i);
    if (any_unit) a.divisor = b.divisor = 1;
    if (!AreFarApart(a, b, same_kind)) continue;
    if (!text.empty()) {
      ++more;
      continue;
    }
    const std::string name =
        named && !names.now[at].empty()
            ? absl::StrCat(" (", Quoted(names.now[at]), ")")
            : "";
    text = absl::StrCat("input ", i, name, " is ", ScaleText(ScaleOf(was, i)),
                        " in ", there, ", but ", ScaleText(ScaleOf(is, i)),
                        " in ", here);
  }
  if (more > 0) absl::StrAppend(&text, ", and ", more, " more differ");
  return text;
}

absl::Status CheckWeightsMeaning(const std::string& weights,
                                 const v1::ModelRecord& record,
                                 const std::string& run) {
  std::string other;
  const absl::StatusOr<v1::ModelRecord> beside = RecordBeside(weights, &other);
  if (!beside.ok() || !beside->has_preprocessing()) return absl::OkStatus();
  const std::string here = absl::StrCat(run, kModelFile);
  const std::string there = absl::StrCat(other, kModelFile);
  for (const PlacedNames& names :
       PlacedNamesOf(*beside, record.output(), record.preprocessing())) {
    const size_t both = std::min(names.before.size(), names.now.size());
    for (size_t at = 0; at < both; ++at) {
      if (!AreOthers(names.before[at], names.now[at])) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          weights, ": ", OtherText(names, at, here, there), "; use the run ",
          other, " itself, or weights of a run with the same names"));
    }
  }
  struct Difference {
    std::string text;
    const char* same;
  };
  for (const auto& [text, same] :
       {Difference{ModelDifference(*beside, record, here, there), "model"},
        Difference{
            ScaleDifference(*beside, record.preprocessing(), here, there),
            "`normalize`"},
        Difference{FillDifference(beside->training_data().source(),
                                  record.training_data().source(), here, there),
                   "`missing`"}}) {
    if (text.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        weights, ": ", text, ", so the results would be wrong; use the run ",
        other, " itself, or weights of a run with the same ", same));
  }
  return absl::OkStatus();
}

}  // namespace tributary
