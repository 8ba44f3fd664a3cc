// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/csv/csv_labels.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/status/about_field.h"
#include "common/status/cause.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"
#include "common/status/utf8.h"
#include "worker/train/data/readers/csv/csv_fields.h"
#include "worker/train/data/readers/csv/csv_hints.h"

namespace tributary {

namespace {

absl::Status OfLabel(const absl::Status& status) {
  return AboutField(status, "columns.label");
}

// "a", "b", "c", "d" and 3 more.
std::string ListText(const std::vector<std::string>& words) {
  constexpr size_t kMostListed = 4;
  const size_t listed = std::min(words.size(), kMostListed);
  std::string text;
  for (size_t i = 0; i < listed; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", Quoted(words[i]));
  }
  if (words.size() == listed) return text;
  return absl::StrCat(text, " and ", words.size() - listed, " more");
}

}  // namespace

CsvLabels::CsvLabels(const InputFiles& files, const CsvOptions& options,
                     TargetKind kind)
    : files_(files),
      options_(options),
      kind_(kind),
      missing_(options.missing.texts),
      classes_(options.classes.begin(), options.classes.end()) {}

absl::Status CsvLabels::CheckThere(absl::string_view text,
                                   const CsvRows& rows) const {
  // Words are checked when all of them are known (CheckWords).
  const bool number = kind_ == TargetKind::kReal;
  if (!IsMissing(text) && !(number && LooksMissing(text))) {
    return absl::OkStatus();
  }
  return OfLabel(
      rows.Error(absl::StrCat(CsvFieldError(column_, "a label", text),
                              MissingLabelHint(options_.missing, text))));
}

absl::Status CsvLabels::CheckSpellings() const {
  if (!classes_.empty() || AreNumbers()) return absl::OkStatus();
  std::map<double, const WordList::Word*> numbers;
  for (const WordList::Word& word : words_.words()) {
    double value;
    if (!ParseCsvNumber(word.text, &value)) continue;
    const auto [first, is_new] = numbers.emplace(value, &word);
    if (is_new) continue;
    const absl::Status error = Error(word, "one spelling of a number");
    return WithMessage(
        error, absl::StrCat(absl::string_view(error.message()), ", and ",
                            Quoted(first->second->text), " in line ",
                            first->second->first_line,
                            "; if they are two classes, name all classes in "
                            "csv.classes"));
  }
  return absl::OkStatus();
}

absl::Status CsvLabels::CheckWords() const {
  TRIBUTARY_RETURN_IF_ERROR(CheckSpellings());
  for (const WordList::Word& word : words_.words()) {
    if (!LooksMissing(word.text) || classes_.contains(word.text)) continue;
    constexpr size_t kMostNamed = 20;
    const std::vector<std::string> all = words_.Sorted();
    const bool name_all =
        all.size() <= kMostNamed && std::all_of(all.begin(), all.end(), IsUtf8);
    const absl::Status error = Error(word, "a label");
    return WithMessage(
        error,
        absl::StrCat(
            absl::string_view(error.message()),
            MissingLabelHint(options_.missing, word.text),
            "; if it is a class, name all classes in csv.classes",
            name_all ? absl::StrCat(", as in classes: ", YamlList(all)) : ""));
  }
  return absl::OkStatus();
}

std::vector<std::string> CsvLabels::Classes() const {
  if (!options_.classes.empty()) return options_.classes;
  return AreNumbers() ? std::vector<std::string>() : words_.Sorted();
}

bool CsvLabels::AreNumbers() const {
  Targets probe;
  probe.kind = kind_;
  for (const WordList::Word& word : words_.words()) {
    double value;
    if (!ParseCsvNumber(word.text, &value) || !probe.Append(value).ok()) {
      return false;
    }
  }
  return true;
}

absl::Status CsvLabels::Error(const WordList::Word& word,
                              absl::string_view wanted) const {
  return OfLabel(absl::InvalidArgumentError(
      absl::StrCat(files_.name(word.first_file), ": line ", word.first_line,
                   ": ", CsvFieldError(column_, wanted, word.text))));
}

absl::StatusOr<std::vector<double>> CsvLabels::Values(
    const std::vector<std::string>& classes) const {
  const std::vector<WordList::Word>& found = words_.words();
  const bool binary = kind_ == TargetKind::kBinary;
  if (binary && !classes.empty() && classes.size() != 2) {
    return OfLabel(absl::InvalidArgumentError(
        absl::StrCat(files_.name(), ": column ", column_,
                     ": wanted 0 and 1 or two different words as labels, got ",
                     classes.size(), " different: ", ListText(classes))));
  }
  std::vector<double> value(found.size());
  const std::vector<int32_t> places = words_.PlacesIn(classes);
  for (size_t i = 0; i < found.size(); ++i) {
    if (!classes.empty()) {
      if (places[i] < 0) {
        return Error(found[i], options_.classes.empty()
                                   ? "one of the training data's labels"
                                   : "one of csv.classes");
      }
      value[i] = places[i];
      continue;
    }
    Targets probe;
    probe.kind = kind_;
    if (!ParseCsvNumber(found[i].text, &value[i]) ||
        !probe.Append(value[i]).ok()) {
      return Error(found[i], binary ? "0 or 1 as in the training data"
                                    : "a class number as in the training "
                                      "data");
    }
  }
  return value;
}

}  // namespace tributary
