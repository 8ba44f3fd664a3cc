// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/quantities.h"

#include <cctype>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tributary {
namespace {

constexpr double kLargest = 1e18;

using Units = std::map<std::string, double>;

// Adds the units of bytes with decimal (1000) and binary (1024) prefixes.
void AddByteUnits(Units* units) {
  double decimal = 1, binary = 1;
  for (const char* prefix : {"", "k", "m", "g", "t"}) {
    (*units)[absl::StrCat(prefix, "b")] = decimal;
    if (*prefix != '\0') (*units)[absl::StrCat(prefix, "ib")] = binary;
    decimal *= 1000;
    binary *= 1024;
  }
}

absl::StatusOr<double> Parse(absl::string_view text, const Units& units,
                             const char* wanted) {
  size_t digits = 0;
  while (digits < text.size() &&
         (isdigit(static_cast<unsigned char>(text[digits])) != 0 ||
          text[digits] == '.')) {
    ++digits;
  }
  double number = 0;
  const std::string unit =
      absl::AsciiStrToLower(absl::StripAsciiWhitespace(text.substr(digits)));
  const auto found = units.find(unit);
  if (!absl::SimpleAtod(text.substr(0, digits), &number) ||
      found == units.end() || !(number * found->second < kLargest)) {
    return absl::InvalidArgumentError(
        absl::StrCat("wanted ", wanted, ", got \"", text, "\""));
  }
  return number * found->second;
}

}  // namespace

absl::StatusOr<double> ParseRate(absl::string_view text) {
  Units units;
  AddByteUnits(&units);
  double bits = 1.0 / 8;
  for (const char* prefix : {"", "k", "m", "g", "t"}) {
    units[absl::StrCat(prefix, "bit")] = bits;
    bits *= 1000;
  }
  const char* wanted = "a rate above 0 such as 1Gbit or 100MB";
  absl::string_view amount = text;
  absl::ConsumeSuffix(&amount, "/s");
  absl::StatusOr<double> rate = Parse(amount, units, wanted);
  if (!rate.ok() || *rate > 0) return rate;
  return absl::InvalidArgumentError(
      absl::StrCat("wanted ", wanted, ", got \"", text, "\""));
}

absl::StatusOr<double> ParseSeconds(absl::string_view text) {
  return Parse(text, {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}},
               "a time such as 0.2ms, 50us or 1s");
}

absl::StatusOr<double> ParseBytes(absl::string_view text) {
  Units units;
  AddByteUnits(&units);
  units[""] = 1;
  return Parse(text, units, "bytes such as 256kB or 4MiB");
}

absl::StatusOr<Shape> ParseShape(absl::string_view text) {
  Shape shape;
  for (absl::string_view part : absl::StrSplit(text, 'x')) {
    int64_t extent = 0;
    if (!absl::SimpleAtoi(part, &extent) || extent < 1 || shape.size() == 8) {
      return absl::InvalidArgumentError(absl::StrCat(
          "wanted a shape such as 28x28 or 3x32x32, got \"", text, "\""));
    }
    shape.push_back(extent);
  }
  return shape;
}

std::string SecondsText(double seconds) {
  const char* unit = "s";
  if (seconds < 1e-3) {
    seconds *= 1e6;
    unit = "us";
  } else if (seconds < 1) {
    seconds *= 1e3;
    unit = "ms";
  }
  const int decimals = seconds < 9.995 ? 2 : seconds < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f %s", decimals, seconds, unit);
}

}  // namespace tributary
