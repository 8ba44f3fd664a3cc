// SPDX-License-Identifier: Apache-2.0
#include "common/model_record/check_preprocessing.h"

#include <cmath>
#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 32;  // of one sample
constexpr int32_t kMaxColumns = 1 << 24;

template <typename... Text>
absl::Status Error(const Text&... text) {
  return absl::InvalidArgumentError(absl::StrCat("preprocessing.", text...));
}

absl::StatusOr<int64_t> ElementsOf(const v1::Preprocessing& preprocessing) {
  int64_t elements = 1;
  for (int64_t extent : preprocessing.feature_shape()) {
    if (extent < 1 || extent > kMaxElements / elements) {
      return Error("feature_shape is impossible");
    }
    elements *= extent;
  }
  if (preprocessing.feature_shape().empty()) {
    return Error("feature_shape is empty");
  }
  return elements;
}

// Whether the entries ascend strictly, so that each occurs once.
template <typename List>
bool Ascends(const List& list) {
  for (int i = 1; i < list.size(); ++i) {
    if (!(list[i - 1] < list[i])) return false;
  }
  return true;
}

absl::Status CheckNumeric(const v1::NumericFeatures& numeric) {
  const int64_t count = numeric.count();
  if (count < 0) return Error("numeric.count is negative");
  const int pairs = numeric.mean_size();
  if (numeric.deviation_size() != pairs || (pairs > 1 && pairs != count)) {
    return Error("numeric has ", pairs, " means and ", numeric.deviation_size(),
                 " deviations for ", count, " features");
  }
  for (float deviation : numeric.deviation()) {
    if (!(deviation > 0)) return Error("numeric.deviation is not positive");
  }
  if (numeric.offset_size() != 0 && numeric.offset_size() != pairs) {
    return Error("numeric has ", numeric.offset_size(), " offsets and ", pairs,
                 " means");
  }
  for (double offset : numeric.offset()) {
    if (!std::isfinite(offset)) return Error("numeric.offset is not finite");
  }
  if (!(numeric.byte_divisor() >= 0)) {
    return Error("numeric.byte_divisor is negative");
  }
  return absl::OkStatus();
}

absl::Status CheckColumn(const v1::CsvTable& table,
                         const v1::CsvColumn& column) {
  if (column.index() >= 0 && column.index() < table.columns()) {
    return absl::OkStatus();
  }
  return Error("csv has a column ", column.index(), " of ", table.columns());
}

absl::Status CheckMissing(const v1::CsvTable& table) {
  const bool fills = !table.missing().empty() && !table.skip_missing();
  const int wanted = fills ? table.numeric_size() : 0;
  if (table.fill_size() != wanted) {
    return Error("csv.fill has ", table.fill_size(), " values, wanted ",
                 wanted);
  }
  for (double value : table.fill()) {
    if (!std::isfinite(static_cast<float>(value))) {
      return Error("csv.fill is not finite");
    }
  }
  if (table.skip_missing() && table.missing().empty()) {
    return Error("csv.skip_missing wants texts in csv.missing");
  }
  return absl::OkStatus();
}

// Adds the features of the categories to `features`.
absl::Status CheckCsv(const v1::CsvTable& table, int64_t numeric,
                      int64_t* features) {
  if (table.delimiter().size() != 1 || table.columns() < 1 ||
      table.columns() > kMaxColumns) {
    return Error("csv wants one character as delimiter and 1 to ", kMaxColumns,
                 " columns");
  }
  if (table.numeric_size() != numeric) {
    return Error("csv has ", table.numeric_size(), " numeric columns for ",
                 numeric, " features");
  }
  TRIBUTARY_RETURN_IF_ERROR(CheckMissing(table));
  TRIBUTARY_RETURN_IF_ERROR(CheckColumn(table, table.label()));
  for (const v1::CsvColumn& column : table.numeric()) {
    TRIBUTARY_RETURN_IF_ERROR(CheckColumn(table, column));
  }
  for (const v1::CsvCategories& one : table.categorical()) {
    TRIBUTARY_RETURN_IF_ERROR(CheckColumn(table, one.column()));
    if (!Ascends(one.categories()))
      return Error("csv.categories do not ascend");
    *features += one.categories_size();
  }
  return absl::OkStatus();
}

absl::Status CheckText(const v1::TextTokens& text, int64_t elements) {
  if (text.vocabulary().empty() || !Ascends(text.vocabulary())) {
    return Error("text.vocabulary does not ascend");
  }
  const bool bytes = text.tokens() == v1::TextSource::BYTES;
  const int32_t most = bytes ? 0xFF : 0x10FFFF;
  if (text.vocabulary(0) < 0 ||
      text.vocabulary(text.vocabulary_size() - 1) > most) {
    return Error("text.vocabulary has a token outside 0 to ", most);
  }
  if (text.length() == elements) return absl::OkStatus();
  return Error("text.length is not that of feature_shape");
}

}  // namespace

absl::Status CheckPreprocessing(const v1::Preprocessing& preprocessing) {
  TRIBUTARY_ASSIGN_OR_RETURN(const int64_t elements, ElementsOf(preprocessing));
  if ((preprocessing.source() == "csv") != preprocessing.has_csv() ||
      (preprocessing.source() == "text") != preprocessing.has_text()) {
    return Error("source does not fit the fields");
  }
  std::set<std::string> classes;
  for (const std::string& name : preprocessing.class_names()) {
    if (!classes.insert(name).second) {
      return Error("class_names has a name twice");
    }
  }
  if (preprocessing.has_text()) {
    return CheckText(preprocessing.text(), elements);
  }
  if (!preprocessing.has_numeric()) return absl::OkStatus();
  TRIBUTARY_RETURN_IF_ERROR(CheckNumeric(preprocessing.numeric()));
  int64_t features = preprocessing.numeric().count();
  if (preprocessing.has_csv()) {
    TRIBUTARY_RETURN_IF_ERROR(
        CheckCsv(preprocessing.csv(), features, &features));
  }
  if (features == elements) return absl::OkStatus();
  return Error("features do not add up to feature_shape");
}

}  // namespace tributary
