#include "worker/data/readers/csv_missing.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/data/readers/csv_columns.h"
#include "worker/data/readers/csv_fields.h"

namespace tributary {
namespace {

double MeanOf(const std::vector<float>& values) {
  double sum = 0;
  for (float value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double MedianOf(std::vector<float> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0) return *middle;
  const double below = *std::max_element(values.begin(), middle);
  return (below + *middle) / 2;
}

// The values of a column that are not missing, in the order of rows.
std::vector<float> ValuesOf(const RawData& data, int64_t column) {
  std::vector<float> values;
  for (int64_t row = 0; row < data.rows; ++row) {
    const float value = data.numbers[row * data.numeric_width + column];
    if (!std::isnan(value)) values.push_back(value);
  }
  return values;
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
    const CsvMissing& missing, const RawData& train,
    const std::vector<std::string>& header, const std::vector<int>& columns) {
  if (!missing.fills()) return std::vector<double>();
  if (missing.kind == CsvMissing::Kind::kConstant) {
    return std::vector<double>(columns.size(), missing.constant);
  }
  const bool mean = missing.kind == CsvMissing::Kind::kMean;
  std::vector<double> fill;
  for (size_t i = 0; i < columns.size(); ++i) {
    std::vector<float> values = ValuesOf(train, static_cast<int64_t>(i));
    if (values.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          train.name, ": column ", CsvColumnText(header, columns[i]),
          ": wanted a value to take the ", mean ? "mean" : "median",
          " of, but it is missing in all ", train.rows, " rows"));
    }
    fill.push_back(mean ? MeanOf(values) : MedianOf(std::move(values)));
  }
  return fill;
}

void FillMissing(absl::Span<const double> fill, RawData* data) {
  if (fill.empty()) return;
  for (size_t i = 0; i < data->numbers.size(); ++i) {
    if (!std::isnan(data->numbers[i])) continue;
    data->numbers[i] = static_cast<float>(fill[i % fill.size()]);
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
