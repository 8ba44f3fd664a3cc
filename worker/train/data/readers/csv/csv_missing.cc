// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/csv/csv_missing.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status/about_field.h"
#include "common/status/status_macros.h"
#include "worker/train/data/readers/csv/column_median.h"
#include "worker/train/data/readers/csv/csv_fields.h"
#include "worker/train/data/readers/csv/csv_hints.h"

namespace tributary {
namespace {

// The mean of each numeric column, over its values; NaN without a value.
absl::StatusOr<std::vector<double>> ColumnMeans(int64_t columns,
                                                const RowParts& parts) {
  std::vector<double> sums(columns), counts(columns);
  TRIBUTARY_RETURN_IF_ERROR(parts([&](const RawData& part) {
    for (size_t i = 0; i < part.numbers.size(); ++i) {
      if (std::isnan(part.numbers[i])) continue;
      sums[i % columns] += part.numbers[i];
      ++counts[i % columns];
    }
    return absl::OkStatus();
  }));
  for (int64_t c = 0; c < columns; ++c) sums[c] /= counts[c];
  return sums;
}

// `missing: mean`, or with texts `missing: {mean: true, texts: ["NA"]}`: the
// setting `kind` with the texts that already count as missing and `field`.
std::string MissingSetting(const std::string& kind, const std::string& value,
                           std::vector<std::string> texts,
                           absl::string_view field) {
  field = absl::StripAsciiWhitespace(field);
  if (!IsMissingField(field) &&
      std::find(texts.begin(), texts.end(), field) == texts.end()) {
    texts.emplace_back(field);
  }
  if (texts.empty() && value == "true") {
    return absl::StrCat("missing: ", kind);
  }
  return absl::StrCat("missing: {", kind, ": ", value,
                      texts.empty() ? "" : ", texts: ",
                      texts.empty() ? "" : YamlList(texts), "}");
}

}  // namespace

MissingFields::MissingFields(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    const absl::string_view stripped = absl::StripAsciiWhitespace(text);
    texts_.insert(std::string(stripped));
    double number = 0;
    if (ParseCsvNumber(stripped, &number)) numbers_.insert(number);
  }
}

bool MissingFields::Contains(absl::string_view field) const {
  if (IsMissingField(field)) return true;
  if (texts_.empty()) return false;
  field = absl::StripAsciiWhitespace(field);
  double number = 0;
  return texts_.contains(field) ||
         (!numbers_.empty() && ParseCsvNumber(field, &number) &&
          numbers_.contains(number));
}

absl::StatusOr<std::vector<double>> MeasureFill(
    const CsvMissing& missing, const RawData& train, const RowParts& parts,
    const std::vector<std::string>& header, const CsvColumnRoles& roles) {
  const std::vector<int>& columns = roles.numeric;
  if (!missing.fills()) return std::vector<double>();
  if (missing.kind == CsvMissing::Kind::kConstant) {
    return std::vector<double>(columns.size(), missing.constant);
  }
  const bool mean = missing.kind == CsvMissing::Kind::kMean;
  const auto width = static_cast<int64_t>(columns.size());
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::vector<double> fill,
      mean ? ColumnMeans(width, parts) : ColumnMedians(width, parts));
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!train.offsets.empty()) fill[i] += train.offset(i);
    if (!std::isnan(fill[i])) continue;
    return AboutField(
        absl::InvalidArgumentError(absl::StrCat(
            train.name, ": column ", CsvColumnText(header, columns[i]),
            ": wanted a value to take the ", mean ? "mean" : "median",
            " of, but it is missing in all rows")),
        roles.FieldOf(columns[i]));
  }
  return fill;
}

void FillMissing(absl::Span<const double> fill, RawData* data) {
  if (fill.empty()) return;
  for (size_t i = 0; i < data->numbers.size(); ++i) {
    if (!std::isnan(data->numbers[i])) continue;
    const size_t column = i % fill.size();
    data->numbers[i] = static_cast<float>(fill[column] - data->offset(column));
  }
}

bool LooksMissing(absl::string_view field) {
  field = absl::StripAsciiWhitespace(field);
  for (const char* text :
       {"na",       "n/a", "n.a.", "#n/a",   "#n/a n/a", "#na",
        "<na>",     "nan", "-nan", "1.#ind", "-1.#ind",  "1.#qnan",
        "-1.#qnan", "nat", "null", "(null)", "#null!",   "none",
        "nil",      "\\n", "-",    "--",     "."}) {
    if (absl::EqualsIgnoreCase(field, text)) return true;
  }
  double value;
  return IsMissingField(field) ||
         (absl::SimpleAtod(field, &value) && !std::isfinite(value));
}

std::string MissingHint(const CsvMissing& missing, absl::string_view field) {
  if (!LooksMissing(field)) return "";
  std::string kind = "mean", value = "true";
  if (missing.kind == CsvMissing::Kind::kMedian) kind = "median";
  if (missing.kind == CsvMissing::Kind::kSkip) kind = "skip";
  if (missing.kind == CsvMissing::Kind::kConstant) {
    kind = "constant";
    char digits[32];
    value.assign(digits,
                 std::to_chars(digits, std::end(digits), missing.constant).ptr);
  }
  return absl::StrCat(
      "; to fill or skip missing values, set csv.missing, as in ",
      MissingSetting(kind, value, missing.texts, field));
}

std::string MissingLabelHint(const CsvMissing& missing,
                             absl::string_view field) {
  return absl::StrCat("; to leave out such rows, set csv.missing, as in ",
                      MissingSetting("skip", "true", missing.texts, field));
}

}  // namespace tributary
