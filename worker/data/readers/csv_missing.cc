// SPDX-License-Identifier: Apache-2.0
#include "worker/data/readers/csv_missing.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/data/readers/column_median.h"
#include "worker/data/readers/csv_columns.h"
#include "worker/data/readers/csv_fields.h"

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

// What tables commonly have in place of a missing number.
bool LooksMissing(absl::string_view field) {
  field = absl::StripAsciiWhitespace(field);
  for (const char* text : {"na", "n/a", "nan", "null", "none", "nil", "-"}) {
    if (absl::EqualsIgnoreCase(field, text)) return true;
  }
  return false;
}

}  // namespace

MissingFields::MissingFields(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    texts_.insert(std::string(absl::StripAsciiWhitespace(text)));
  }
}

bool MissingFields::Contains(absl::string_view field) const {
  if (IsMissingField(field)) return true;
  return !texts_.empty() && texts_.contains(absl::StripAsciiWhitespace(field));
}

absl::StatusOr<std::vector<double>> MeasureFill(
    const CsvMissing& missing, const RawData& train, const RowParts& parts,
    const std::vector<std::string>& header, const std::vector<int>& columns) {
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
    return absl::InvalidArgumentError(
        absl::StrCat(train.name, ": column ", CsvColumnText(header, columns[i]),
                     ": wanted a value to take the ", mean ? "mean" : "median",
                     " of, but it is missing in all rows"));
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

std::string MissingHint(const CsvMissing& missing, absl::string_view field) {
  const bool marked = IsMissingField(field);
  if (!marked && !LooksMissing(field)) return "";
  if (missing.kind != CsvMissing::Kind::kError) {
    return "; if this means a missing value, add it to csv.missing.texts";
  }
  return marked ? "; to fill or skip missing values, set csv.missing, as in "
                  "missing: mean"
                : absl::StrCat(
                      "; to fill or skip missing values, set "
                      "csv.missing, as in missing: {mean: true, "
                      "texts: [",
                      absl::StripAsciiWhitespace(field), "]}");
}

}  // namespace tributary
