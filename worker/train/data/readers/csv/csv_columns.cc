// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/csv/csv_columns.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status/about_field.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"
#include "common/status/utf8.h"
#include "worker/train/data/readers/csv/csv_fields.h"
#include "worker/train/data/readers/csv/csv_header.h"
#include "worker/train/data/readers/csv/csv_hints.h"

namespace tributary {
namespace {

constexpr char kIgnore[] = "ignore";
constexpr char kLabel[] = "label";

using Numbers = std::pair<int, int>;  // the first and the last

// "7" or "0-63".
std::optional<Numbers> ParseNumbers(absl::string_view text) {
  const std::vector<absl::string_view> ends = absl::StrSplit(text, '-');
  int first = 0, last = 0;
  for (absl::string_view end : ends) {
    if (end.empty() || !std::all_of(end.begin(), end.end(), [](char c) {
          return absl::ascii_isdigit(c);
        })) {
      return std::nullopt;
    }
  }
  if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
      !absl::SimpleAtoi(ends.back(), &last) || first > last) {
    return std::nullopt;
  }
  return Numbers(first, last);
}

// A name of a header as text for a list.
std::string ListedName(const std::string& name) {
  const bool plain = !name.empty() && IsUtf8(name) &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return absl::ascii_isalnum(c) ||
                              absl::StrContains("_-.", c) ||
                              static_cast<unsigned char>(c) >= 0x80;
                     });
  return plain ? name : Quoted(name);
}

// Lists the columns for a message: "age, workclass, ...", at most kShown.
std::string Listing(const std::vector<std::string>& header, int num_columns) {
  constexpr size_t kShown = 20;
  if (header.empty()) return absl::StrCat("0 to ", num_columns - 1);
  const auto end = header.begin() + std::min(kShown, header.size());
  return absl::StrCat(
      absl::StrJoin(header.begin(), end, ", ",
                    [](std::string* out, const std::string& name) {
                      *out += ListedName(name);
                    }),
      header.size() > kShown ? ", ..." : "");
}

// True for an empty name and for the name that pandas gives to a column without
// one.
bool IsUnnamed(absl::string_view name) {
  return absl::StripAsciiWhitespace(name).empty() ||
         absl::StartsWith(name, "Unnamed: ");
}

// Resolves column names of one file and allows each column only one use.
class Resolver {
 public:
  Resolver(const std::vector<std::string>& header, int num_columns,
           const std::string& file)
      : header_(header),
        num_columns_(num_columns),
        file_(file),
        used_as_(num_columns) {
    constexpr double kMost = std::numeric_limits<int>::max();
    for (size_t i = 0; i < header.size(); ++i) {
      double value;
      if (!ParseCsvNumber(header[i], &value) || value < 0 || value > kMost ||
          value != std::floor(value)) {
        continue;
      }
      named_[static_cast<int>(value)].push_back(static_cast<int>(i));
    }
  }

  // The columns of one field, in order.
  absl::StatusOr<std::vector<int>> Use(const std::vector<std::string>& names,
                                       const char* field) {
    std::vector<int> columns;
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string& name = names[i];
      std::string path = absl::StrCat("columns.", field);
      if (field != kLabel) absl::StrAppend(&path, ".", i);
      TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<int> found,
                                 AboutField(Find(name, field), path));
      for (const int column : found) {
        if (used_as_[column] != nullptr) {
          return AboutField(
              absl::InvalidArgumentError(absl::StrCat(
                  file_, ": column ", CsvColumnText(header_, column),
                  " is named twice, in columns.", used_as_[column],
                  " and columns.", field)),
              path);
        }
        used_as_[column] = field;
        fields_[column] = path;
        columns.push_back(column);
      }
    }
    return columns;
  }

  // The columns that no field names. An error when one of them has no name.
  absl::StatusOr<std::vector<int>> Unused(
      const std::vector<std::string>& ignored) const {
    std::vector<int> columns;
    std::vector<std::string> ignore = ignored;
    for (int column = 0; column < num_columns_; ++column) {
      if (used_as_[column] != nullptr) continue;
      columns.push_back(column);
      if (header_.empty() || !IsUnnamed(header_[column])) continue;
      if (std::find(ignore.begin(), ignore.end(), header_[column]) ==
          ignore.end()) {
        ignore.push_back(header_[column]);
      }
    }
    if (ignore.size() == ignored.size()) return columns;
    return absl::InvalidArgumentError(absl::StrCat(
        file_,
        ": a column has no name and may hold row numbers, so it is a "
        "feature only if columns.numeric or columns.categorical names it; to "
        "leave it out, set columns.ignore, as in ignore: ",
        YamlList(ignore)));
  }

  bool uses_words() const { return uses_words_; }
  const std::map<int, std::string>& fields() const { return fields_; }

 private:
  absl::StatusOr<std::vector<int>> Find(const std::string& name,
                                        const char* field) {
    std::vector<int> columns;
    for (int i = 0; i < static_cast<int>(header_.size()); ++i) {
      if (header_[i] == name) columns.push_back(i);
    }
    if (columns.size() > 1 && !name.empty()) return Twice(name, field);
    const std::optional<Numbers> numbers = ParseNumbers(name);
    if (!columns.empty()) {
      uses_words_ |= !name.empty() && !LooksNumeric(name);
      const bool number = numbers && numbers->first == numbers->second;
      if (number) name_used_ = name;
    } else if (!numbers.has_value()) {
      return NoColumn(name, field);
    } else {
      TRIBUTARY_ASSIGN_OR_RETURN(columns, FindNumbers(name, *numbers, field));
    }
    if (name_used_.empty() || position_used_.empty()) return columns;
    return Ambiguous(position_used_, name_used_, position_field_);
  }

  // Takes `numbers` as names if the header has them all, and as positions if it
  // has none of them.
  absl::StatusOr<std::vector<int>> FindNumbers(const std::string& text,
                                               const Numbers& numbers,
                                               const char* field) {
    std::vector<int> columns;
    const auto end = named_.upper_bound(numbers.second);
    int64_t names = 0;
    for (auto at = named_.lower_bound(numbers.first); at != end; ++at) {
      if (at->second.size() > 1) {
        return Twice(header_[at->second.back()], field);
      }
      columns.push_back(at->second.front());
      ++names;
    }
    if (names > int64_t{numbers.second} - numbers.first) {
      name_used_ = header_[columns.front()];
      return columns;
    }
    if (names > 0) return Ambiguous(text, header_[columns.front()], field);
    if (numbers.second >= num_columns_) return NoColumn(text, field);
    position_used_ = text;
    position_field_ = field;
    columns.resize(numbers.second - numbers.first + 1);
    std::iota(columns.begin(), columns.end(), numbers.first);
    return columns;
  }

  absl::Status Error(const char* field, const std::string& name,
                     const std::string& text) const {
    return absl::InvalidArgumentError(absl::StrCat(
        file_, ": columns.", field, ": ", Quoted(name), " ", text));
  }

  absl::Status Twice(const std::string& name, const char* field) const {
    return Error(field, name,
                 ParseNumbers(name)
                     ? "appears twice in the header; give the columns "
                       "different names"
                     : "appears twice in the header; name the column by its "
                       "number");
  }

  // `text`: numbers that are not all names of the header, which has `name`.
  absl::Status Ambiguous(const std::string& text, const std::string& name,
                         const char* field) const {
    return Error(field, text,
                 absl::StrCat("is ambiguous, because some numbers in columns "
                              "are names of the header, such as ",
                              Quoted(name),
                              ", and others are not; write the names of the "
                              "columns instead"));
  }

  absl::Status NoColumn(const std::string& name, const char* field) const {
    std::string hint;
    if (const std::string near = NearestColumn(name, header_); !near.empty()) {
      hint = absl::StrCat("did you mean ", Quoted(near), "?");
    } else {
      hint = absl::StrCat("columns are ", Listing(header_, num_columns_));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        file_, ": columns.", field, ": no column ", Quoted(name), "; ", hint));
  }

  const std::vector<std::string>& header_;
  const int num_columns_;
  const std::string& file_;
  std::map<int, std::vector<int>> named_;  // columns whose name is a number
  std::vector<const char*> used_as_;  // the field that uses the column, or null
  std::map<int, std::string> fields_;  // CsvColumnRoles
  std::string name_used_;              // the last number that was a name
  std::string position_used_;          // the last numbers that were positions
  const char* position_field_ = "";
  bool uses_words_ = false;
};

// The columns of the label and of the features, in a fixed order.
std::vector<int> UsedColumns(const CsvColumnRoles& roles) {
  std::vector<int> columns = {roles.label};
  columns.insert(columns.end(), roles.numeric.begin(), roles.numeric.end());
  columns.insert(columns.end(), roles.categorical.begin(),
                 roles.categorical.end());
  return columns;
}

// A hint how to allow columns in any order: "; if the columns may have another
// order, name all that are used, as in columns: {label: "y", numeric: ["a"]}".
// Returns "" if a name is empty or appears twice.
std::string AnyOrderHint(const CsvColumnRoles& roles,
                         const std::vector<std::string>& header) {
  constexpr char kHint[] =
      "; if the columns may have another order, name all that are used";
  constexpr size_t kMostNamed = 20;
  const std::vector<int> used = UsedColumns(roles);
  if (used.size() > kMostNamed) return kHint;
  for (const int column : used) {
    if (header[column].empty() || absl::c_count(header, header[column]) > 1) {
      return "";
    }
  }
  const auto names = [&header](const std::vector<int>& columns) {
    std::vector<std::string> list;
    for (const int column : columns) list.push_back(header[column]);
    return YamlList(list);
  };
  std::string setting = absl::StrCat(
      kHint, ", as in columns: {label: ", YamlText(header[roles.label]));
  if (!roles.numeric.empty()) {
    absl::StrAppend(&setting, ", numeric: ", names(roles.numeric));
  }
  if (!roles.categorical.empty()) {
    absl::StrAppend(&setting, ", categorical: ", names(roles.categorical));
  }
  return setting + "}";
}

}  // namespace

std::string CsvColumnText(const std::vector<std::string>& header, int column) {
  if (header.empty()) return absl::StrCat(column);
  return absl::StrCat(column, " (", Quoted(header[column]), ")");
}

absl::StatusOr<CsvColumnRoles> ResolveCsvColumns(
    const CsvColumnNames& names, const std::vector<std::string>& header,
    int num_columns, const std::string& file) {
  Resolver resolver(header, num_columns, file);
  CsvColumnRoles roles;
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<int> label,
                             resolver.Use({names.label}, kLabel));
  if (label.size() != 1) {
    return AboutField(absl::InvalidArgumentError(absl::StrCat(
                          file, ": columns.label: wanted one column, got \"",
                          names.label, "\"")),
                      "columns.label");
  }
  roles.label = label[0];
  TRIBUTARY_RETURN_IF_ERROR(resolver.Use(names.ignore, kIgnore).status());
  TRIBUTARY_ASSIGN_OR_RETURN(roles.numeric,
                             resolver.Use(names.numeric, "numeric"));
  TRIBUTARY_ASSIGN_OR_RETURN(roles.categorical,
                             resolver.Use(names.categorical, "categorical"));
  if (names.numeric.empty() && names.categorical.empty()) {
    TRIBUTARY_ASSIGN_OR_RETURN(roles.numeric, resolver.Unused(names.ignore));
  }
  if (roles.numeric.empty() && roles.categorical.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": no column is left to learn from"));
  }
  roles.fields = resolver.fields();
  roles.uses_words = resolver.uses_words();
  return roles;
}

absl::Status CheckColumnsAlike(const CsvColumnRoles& roles,
                               const std::vector<std::string>& header,
                               const CsvColumnRoles& train,
                               const std::vector<std::string>& train_header,
                               const std::string& place) {
  const std::vector<int> found = UsedColumns(roles);
  const std::vector<int> wanted = UsedColumns(train);
  if (header.empty() || train_header.empty() || found.size() != wanted.size()) {
    return absl::OkStatus();
  }
  for (size_t i = 0; i < found.size(); ++i) {
    const std::string& name = train_header[wanted[i]];
    if (header[found[i]] == name) continue;
    return AboutField(
        absl::InvalidArgumentError(absl::StrCat(
            place, ": column ", CsvColumnText(header, found[i]), ": wanted ",
            Quoted(name), " at this position, as in the training data",
            AnyOrderHint(train, train_header))),
        roles.FieldOf(found[i]));
  }
  return absl::OkStatus();
}

}  // namespace tributary
