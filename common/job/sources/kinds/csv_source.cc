// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/job/sources/source_kind.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// `missing: {mean: true}` is valid; `missing: {mean: false}` is an error.
absl::Status ValidateMissing(const Places& places, const std::string& path,
                             const v1::MissingSpec& missing) {
  const std::pair<const char*, bool> kinds[] = {
      {"mean", !missing.has_mean() || missing.mean()},
      {"median", !missing.has_median() || missing.median()},
      {"skip", !missing.has_skip() || missing.skip()}};
  for (const auto& [kind, valid] : kinds) {
    if (valid) continue;
    const std::string field = absl::StrCat(path, ".", kind);
    return places.Error(field, field,
                        " can only be true; to make a missing value an error, "
                        "leave out ",
                        path);
  }
  return absl::OkStatus();
}

// Parses a column number from 0; false when the text is not a number.
bool ParseColumn(absl::string_view text, int64_t* column) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), *column);
  return error == std::errc() && end == text.data() + text.size() &&
         *column >= 0;
}

// True for "7" or "0-63".
bool IsColumnNumbers(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(text, absl::MaxSplits('-', 1));
  int64_t first, last;
  if (!ParseColumn(ends.first, &first)) return false;
  if (ends.first.size() == text.size()) return true;
  return ParseColumn(ends.second, &last) && first <= last;
}

class ColumnCheck {
 public:
  ColumnCheck(const Places& places, bool header)
      : places_(places), header_(header) {}

  absl::Status Take(const std::string& path, const std::string& column) {
    // In a header, "" is the column without a name.
    if (!header_ && !IsColumnNumbers(column)) {
      return places_.Error(path, path,
                           " wants a number from 0 or a range such as 0-63 ",
                           "in a file without header, got ", Quoted(column));
    }
    if (!seen_.insert(column).second) {
      return places_.Error(path, path, " names column ", Quoted(column),
                           ", which is named before");
    }
    return absl::OkStatus();
  }

  template <typename Columns>
  absl::Status TakeAll(const std::string& path, const Columns& columns) {
    for (int i = 0; i < columns.size(); ++i) {
      TRIBUTARY_RETURN_IF_ERROR(
          Take(absl::StrCat(path, ".", i), columns.Get(i)));
    }
    return absl::OkStatus();
  }

 private:
  const Places& places_;
  const bool header_;
  std::set<std::string> seen_;
};

absl::Status ValidateClasses(const Places& places, const std::string& path,
                             const v1::CsvSource& csv) {
  std::set<std::string> seen;
  for (int i = 0; i < csv.classes_size(); ++i) {
    const std::string item = absl::StrCat(path, ".", i);
    if (csv.classes(i).empty()) return places.Error(item, item, " is empty");
    if (!seen.insert(csv.classes(i)).second) {
      return places.Error(item, item, " names class ", Quoted(csv.classes(i)),
                          ", which is named before");
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateCsv(const Places& places, const std::string& path,
                         const v1::CsvSource& csv) {
  const std::string& delimiter = csv.delimiter();
  if (delimiter.size() != 1 || delimiter == "\"") {
    return places.Error(path + ".delimiter", path,
                        ".delimiter wants one character, got ",
                        Quoted(delimiter));
  }
  const std::string columns_path = path + ".columns";
  const v1::CsvColumns& columns = csv.columns();
  int64_t unused;
  const bool header = !csv.has_header() || csv.header();
  const std::string label_path = columns_path + ".label";
  if (!header && !ParseColumn(columns.label(), &unused)) {
    return places.Error(label_path, label_path,
                        " wants a number from 0 in a file without header, got ",
                        Quoted(columns.label()));
  }
  TRIBUTARY_RETURN_IF_ERROR(
      ValidateMissing(places, path + ".missing", csv.missing()));
  TRIBUTARY_RETURN_IF_ERROR(ValidateClasses(places, path + ".classes", csv));
  ColumnCheck check(places, header);
  TRIBUTARY_RETURN_IF_ERROR(check.Take(label_path, columns.label()));
  TRIBUTARY_RETURN_IF_ERROR(
      check.TakeAll(columns_path + ".numeric", columns.numeric()));
  TRIBUTARY_RETURN_IF_ERROR(
      check.TakeAll(columns_path + ".categorical", columns.categorical()));
  return check.TakeAll(columns_path + ".ignore", columns.ignore());
}

class CsvSourceKind : public SourceKind {
 public:
  std::vector<Files> FilesOf(v1::DataSource* source) const override {
    return {{"path", source->mutable_csv()->mutable_path()}};
  }

  std::vector<std::string> Inherited() const override {
    return {"columns", "header", "delimiter", "missing", "classes"};
  }

  void Resolve(v1::DataSource* source) const override {
    v1::CsvSource* csv = source->mutable_csv();
    if (!csv->delimiter().empty() || csv->path().empty()) return;
    const std::string path = absl::AsciiStrToLower(csv->path(0));
    const bool tabs =
        absl::EndsWith(path, ".tsv") || absl::EndsWith(path, ".tsv.gz");
    csv->set_delimiter(tabs ? "\t" : ",");
  }

  absl::Status Validate(const Places& places, const std::string& path,
                        const v1::DataSource& source) const override {
    return ValidateCsv(places, path, source.csv());
  }
};

}  // namespace

void AddCsvSource(SourceKinds* kinds) {
  static const CsvSourceKind csv;
  kinds->Add(v1::DataSource::kCsv, &csv);
}

}  // namespace tributary
