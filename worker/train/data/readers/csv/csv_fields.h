// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/status/quoted.h"

namespace tributary {

// The meaning of the fields of a CSV file, for every reader of such files.

// Accepts decimal numbers that are finite as float32. SimpleAtod also accepts
// "0x10", hence the check for x. A number too small for float64 becomes the
// smallest one and not 0, so that it counts as rounded.
inline bool ParseCsvNumber(absl::string_view text, double* value) {
  if (text.find_first_of("xX") != absl::string_view::npos ||
      !absl::SimpleAtod(text, value) ||
      !std::isfinite(static_cast<float>(*value))) {
    return false;
  }
  if (*value == 0 &&
      text.substr(0, text.find_first_of("eE")).find_first_of("123456789") !=
          text.npos) {
    *value = std::copysign(std::numeric_limits<double>::denorm_min(), *value);
  }
  return true;
}

// Whether float64 holds the number in the text, parsed as `value`, exactly.
// Also true below 2^53, where float64 rounds only fractions, and for a number
// with an exponent, which programs write for float64.
inline bool IsExactCsvNumber(absl::string_view text, double value) {
  if (std::abs(value) < 0x1p53 || text.find_first_of("eE") != text.npos) {
    return true;
  }
  const auto digits = [](absl::string_view number) {
    std::string kept;
    for (char c : number) {
      if (absl::ascii_isdigit(c)) kept.push_back(c);
    }
    kept.erase(kept.find_last_not_of('0') + 1);
    return kept.substr(kept.find_first_not_of('0'));
  };
  return digits(text) == digits(absl::StrFormat("%.0f", value));
}

inline bool IsMissingField(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  return text.empty() || text == "?";
}

// `column 3 ("age"): wanted a number, got "x"`. `column` is CsvColumnText.
inline std::string CsvFieldError(absl::string_view column,
                                 absl::string_view wanted,
                                 absl::string_view got) {
  return absl::StrCat("column ", column, ": wanted ", wanted, ", got ",
                      Quoted(got));
}

}  // namespace tributary
