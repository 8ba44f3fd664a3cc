// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/csv/csv_header.h"

#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/quoted.h"
#include "worker/train/data/readers/csv/csv_fields.h"

namespace tributary {
namespace {

enum class FieldKind { kNothing, kNumber, kWord };

FieldKind KindOfField(absl::string_view field, const MissingFields& missing) {
  if (missing.Contains(field) || LooksMissing(field)) {
    return FieldKind::kNothing;
  }
  return LooksNumeric(field) ? FieldKind::kNumber : FieldKind::kWord;
}

}  // namespace

bool LooksNumeric(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  double unused;
  if (ParseCsvNumber(text, &unused)) return true;
  bool digit = false;
  for (const char c : text) {
    if (!absl::ascii_isdigit(c) && !absl::StrContains("+-.,:/% eETZ'", c)) {
      return false;
    }
    digit |= absl::ascii_isdigit(c);
  }
  return digit && !absl::ascii_isalpha(text[0]);
}

bool HasWordAboveNumber(const std::vector<std::string>& first,
                        absl::Span<const absl::string_view> next,
                        absl::Span<const int> columns,
                        const MissingFields& missing) {
  bool found = false;
  for (const int column : columns) {
    const auto at = static_cast<size_t>(column);
    if (at >= first.size() || at >= next.size()) continue;
    const FieldKind kind = KindOfField(first[at], missing);
    if (kind == FieldKind::kNumber) return false;
    found |= kind == FieldKind::kWord &&
             KindOfField(next[at], missing) == FieldKind::kNumber;
  }
  return found;
}

std::string DataAmongNames(const std::vector<std::string>& first,
                           const MissingFields& missing) {
  std::set<absl::string_view> seen;
  for (const std::string& field : first) {
    if (absl::StripAsciiWhitespace(field).empty()) continue;
    if (KindOfField(field, missing) != FieldKind::kWord ||
        !seen.insert(field).second) {
      return field;
    }
  }
  return "";
}

std::string NoHeaderText(absl::string_view name, absl::string_view why) {
  return absl::StrCat("wanted a header with the names of the columns, got ",
                      Quoted(name), ", ", why,
                      "; if the file has no header, set csv.header, as in "
                      "header: false; if this row has the names, set header: "
                      "true");
}

}  // namespace tributary
