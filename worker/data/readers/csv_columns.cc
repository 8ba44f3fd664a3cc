// SPDX-License-Identifier: Apache-2.0
#include "worker/data/readers/csv_columns.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// Lists the columns for a message: "age, workclass, ...", at most kShown.
std::string Listing(const std::vector<std::string>& header, int num_columns) {
  constexpr size_t kShown = 20;
  if (header.empty()) return absl::StrCat("0 to ", num_columns - 1);
  const auto end = header.begin() + std::min(kShown, header.size());
  return absl::StrCat(absl::StrJoin(header.begin(), end, ", "),
                      header.size() > kShown ? ", ..." : "");
}

// Resolves column names of one file and allows each column only one use.
class Resolver {
 public:
  Resolver(const std::vector<std::string>& header, int num_columns,
           const std::string& file)
      : header_(header),
        num_columns_(num_columns),
        file_(file),
        used_as_(num_columns) {}

  // The columns of one field, in order.
  absl::StatusOr<std::vector<int>> Use(const std::vector<std::string>& names,
                                       const char* field) {
    std::vector<int> columns;
    for (const std::string& name : names) {
      TRIBUTARY_ASSIGN_OR_RETURN(const auto range, Find(name, field));
      for (int column = range.first; column <= range.second; ++column) {
        if (used_as_[column] != nullptr) {
          return absl::InvalidArgumentError(
              absl::StrCat(file_, ": column ", CsvColumnText(header_, column),
                           " is named twice, in columns.", used_as_[column],
                           " and columns.", field));
        }
        used_as_[column] = field;
        columns.push_back(column);
      }
    }
    return columns;
  }

  std::vector<int> Unused() const {
    std::vector<int> columns;
    for (int column = 0; column < num_columns_; ++column) {
      if (used_as_[column] == nullptr) columns.push_back(column);
    }
    return columns;
  }

 private:
  // The first and last column of a name.
  absl::StatusOr<std::pair<int, int>> Find(const std::string& name,
                                           const char* field) const {
    const auto found = std::find(header_.begin(), header_.end(), name);
    if (found != header_.end()) {
      if (std::find(found + 1, header_.end(), name) != header_.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat(file_, ": columns.", field, ": \"", name,
                         "\" stands twice in the header; use numbers"));
      }
      const int column = static_cast<int>(found - header_.begin());
      return std::pair(column, column);
    }
    const std::vector<std::string> ends = absl::StrSplit(name, '-');
    int first = -1, last = -1;
    if (ends.size() <= 2 && absl::SimpleAtoi(ends.front(), &first) &&
        absl::SimpleAtoi(ends.back(), &last) && 0 <= first && first <= last &&
        last < num_columns_) {
      return std::pair(first, last);
    }
    return absl::InvalidArgumentError(
        absl::StrCat(file_, ": columns.", field, ": no column \"", name,
                     "\"; columns are ", Listing(header_, num_columns_)));
  }

  const std::vector<std::string>& header_;
  const int num_columns_;
  const std::string& file_;
  std::vector<const char*> used_as_;  // the field that uses the column, or null
};

}  // namespace

std::string CsvColumnText(const std::vector<std::string>& header, int column) {
  if (header.empty()) return absl::StrCat(column);
  return absl::StrCat(column, " (\"", header[column], "\")");
}

absl::StatusOr<CsvColumnRoles> ResolveCsvColumns(
    const CsvColumnNames& names, const std::vector<std::string>& header,
    int num_columns, const std::string& file) {
  Resolver resolver(header, num_columns, file);
  CsvColumnRoles roles;
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<int> label,
                             resolver.Use({names.label}, "label"));
  if (label.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": columns.label: wanted one column, got \"", names.label, "\""));
  }
  roles.label = label[0];
  TRIBUTARY_RETURN_IF_ERROR(resolver.Use(names.ignore, "ignore").status());
  TRIBUTARY_ASSIGN_OR_RETURN(roles.numeric,
                             resolver.Use(names.numeric, "numeric"));
  TRIBUTARY_ASSIGN_OR_RETURN(roles.categorical,
                             resolver.Use(names.categorical, "categorical"));
  if (names.numeric.empty() && names.categorical.empty()) {
    roles.numeric = resolver.Unused();
  }
  if (roles.numeric.empty() && roles.categorical.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": no column is left to learn from"));
  }
  return roles;
}

}  // namespace tributary
