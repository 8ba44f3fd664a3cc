// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/csv/csv_hints.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/status/nearest_name.h"
#include "worker/train/data/readers/csv/csv_fields.h"

namespace tributary {
namespace {

// The numbers that a text with commas may stand for, with a decimal point:
// "1,234" may be 1.234 or 1234.
std::vector<std::string> WithoutCommas(absl::string_view text) {
  const size_t comma = text.rfind(',');
  if (comma == absl::string_view::npos) return {};
  const std::string joined = absl::StrReplaceAll(text, {{",", ""}});
  if (text.find(',') != comma || absl::StrContains(text.substr(comma), '.')) {
    return {joined};
  }
  const std::string decimal =
      absl::StrReplaceAll(text, {{".", ""}, {",", "."}});
  const absl::string_view behind = text.substr(comma + 1);
  const bool thousands =
      behind.size() == 3 && comma > 0 && !absl::StrContains(text, '.') &&
      std::all_of(behind.begin(), behind.end(), absl::ascii_isdigit);
  return thousands ? std::vector{decimal, joined} : std::vector{decimal};
}

}  // namespace

char OtherDelimiter(absl::Span<const absl::string_view> fields,
                    char delimiter) {
  char best = 0;
  int64_t most = static_cast<int64_t>(fields.size()) - 1;
  for (const char c : {';', '\t', '|', ',', ' '}) {
    if (c == delimiter || (c == ' ' && fields.size() > 1)) continue;
    int64_t count = 0;
    for (absl::string_view field : fields) {
      // Blanks around a field separate nothing.
      if (c == ' ') field = absl::StripAsciiWhitespace(field);
      count += std::count(field.begin(), field.end(), c);
    }
    if (count == 0 || count < most || (best != 0 && count == most)) continue;
    most = count;
    best = c;
  }
  return best;
}

std::string DelimiterHint(absl::Span<const absl::string_view> fields,
                          char delimiter) {
  if (std::all_of(fields.begin(), fields.end(), [](absl::string_view field) {
        return absl::StripAsciiWhitespace(field).empty();
      })) {
    return "; the line has nothing but blanks: remove it";
  }
  if (absl::StartsWith(absl::StripAsciiWhitespace(fields[0]), "#")) {
    return "; a CSV file has no comments: take the # or the line out";
  }
  const char other = OtherDelimiter(fields, delimiter);
  if (other == 0) return "";
  return absl::StrCat(
      "; the fields seem to have another delimiter; set csv.delimiter, as in "
      "delimiter: ",
      YamlText(absl::string_view(&other, 1)));
}

std::string NumberHint(absl::string_view field) {
  double value;
  if (absl::SimpleAtod(field, &value) && !std::isnan(value) &&
      !std::isfinite(static_cast<float>(value))) {
    return "; a number must be finite as float32, which holds up to 3.4e38";
  }
  const std::vector<std::string> numbers =
      WithoutCommas(absl::StripAsciiWhitespace(field));
  if (numbers.empty() || !ParseCsvNumber(numbers[0], &value)) return "";
  return absl::StrCat("; a number has a decimal point and no commas, as in ",
                      absl::StrJoin(numbers, " or "));
}

std::string YamlText(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\t') {
      quoted += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      absl::StrAppend(&quoted, "\\u", absl::Hex(byte, absl::kZeroPad4));
    } else {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string YamlList(absl::Span<const std::string> texts) {
  const auto append = [](std::string* out, const std::string& text) {
    *out += YamlText(text);
  };
  return absl::StrCat("[", absl::StrJoin(texts, ", ", append), "]");
}

std::string NearestColumn(absl::string_view name,
                          const std::vector<std::string>& header) {
  constexpr size_t kMostCompared = 10000;
  std::vector<std::string> like;  // of about the same length
  for (const std::string& column : header) {
    if (absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(column),
                               absl::StripAsciiWhitespace(name))) {
      return column;
    }
    if (column.size() <= 2 * name.size() && like.size() < kMostCompared) {
      like.push_back(column);
    }
  }
  // All names of two letters are similar to each other.
  return name.size() < 3 ? "" : NearestName(name, like);
}

}  // namespace tributary
