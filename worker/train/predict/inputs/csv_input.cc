// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"
#include "worker/train/data/readers/csv/csv_columns.h"
#include "worker/train/data/readers/csv/csv_fields.h"
#include "worker/train/data/readers/csv/csv_hints.h"
#include "worker/train/data/readers/csv/csv_missing.h"
#include "worker/train/data/readers/csv/csv_rows.h"
#include "worker/train/data/readers/input_file.h"
#include "worker/train/predict/inputs/input_rows.h"

namespace tributary {
namespace {

using WordNumbers = absl::flat_hash_map<std::string, int32_t>;

template <typename Words>
WordNumbers Numbered(const Words& words) {
  WordNumbers numbers;
  for (int i = 0; i < words.size(); ++i) numbers[words[i]] = i;
  return numbers;
}

// A categorical column of the file.
struct Categories {
  int column = 0;
  int64_t width = 0;
  WordNumbers numbers;
  int64_t unknown = 0;  // rows
  std::string first_unknown;
  int64_t first_line = 0;
};

// Rows of a table. With a header, columns are found by name, in any order, and
// others are ignored. Without one, the file has the columns of the training
// file, with or without the label.
class CsvInput final : public InputRows {
 public:
  CsvInput(std::unique_ptr<InputFile> file,
           const v1::Preprocessing& preprocessing, const InputOptions& options)
      : file_(std::move(file)),
        preprocessing_(preprocessing),
        table_(preprocessing.csv()),
        options_(options),
        missing_({table_.missing().begin(), table_.missing().end()}),
        rows_(file_.get(), table_.delimiter()[0]),
        classes_(Numbered(preprocessing.class_names())) {}

  absl::Status Begin();
  absl::StatusOr<RawData> Next(int64_t most) override;
  std::vector<std::string> TakeWarnings() override;

 private:
  absl::StatusOr<int> Find(const v1::CsvColumn& column) const;
  absl::Status FindColumns();
  absl::Status ReadRow(RawData* data);
  absl::Status ReadNumber(int number, RawData* data) const;
  bool IsMissing(int column) const {
    return !table_.missing().empty() && missing_.Contains(fields_[column]);
  }
  // Whether the current row is left out for a missing value, as in training.
  // Rows to predict are never left out: each has a prediction.
  bool SkipsRow() const;
  absl::Status CheckWidth() const;
  absl::Status SkippedInTraining(int column) const;
  absl::Status ReadCategory(Categories* categories, RawData* data);
  absl::Status ReadLabel(RawData* data);
  absl::Status FieldError(int column, absl::string_view wanted,
                          absl::string_view hint = "") const {
    return rows_.Error(absl::StrCat(
        CsvFieldError(CsvColumnText(header_, column), wanted, fields_[column]),
        hint));
  }
  // Returns a hint when the fields seem to be separated by another character
  // than those of the training data.
  std::string OtherDelimiterHint() const;
  bool LabelIsMissing() const {
    return missing_.Contains(fields_[label_]) &&
           !classes_.contains(fields_[label_]);
  }
  absl::StatusOr<bool> Advance();

  const std::unique_ptr<InputFile> file_;
  const v1::Preprocessing& preprocessing_;
  const v1::CsvTable& table_;
  const InputOptions options_;
  const MissingFields missing_;
  CsvRows rows_;
  const WordNumbers classes_;
  std::vector<absl::string_view> fields_;  // of the current row
  bool more_ = false;                      // fields_ are a row to read
  int64_t row_ = 0;                        // its number, from 0
  std::vector<std::string> header_;        // empty when the file has none
  int num_columns_ = 0;
  bool without_label_ = false;  // of a file without header
  std::vector<int> numeric_;
  std::vector<Categories> categories_;
  int label_ = 0;
  int64_t skipped_ = 0;        // rows
  int64_t first_skipped_ = 0;  // the line of the first
};

absl::Status CsvInput::Begin() {
  TRIBUTARY_ASSIGN_OR_RETURN(more_, rows_.Next(&fields_));
  if (!more_) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_->name(), ": wanted rows, but the file is empty"));
  }
  num_columns_ = static_cast<int>(fields_.size());
  if (table_.header()) {
    for (absl::string_view field : fields_) header_.emplace_back(field);
  }
  TRIBUTARY_RETURN_IF_ERROR(FindColumns());
  if (table_.header()) {
    TRIBUTARY_ASSIGN_OR_RETURN(more_, rows_.Next(&fields_));
  }
  while (more_ && row_ < options_.range.first) {
    TRIBUTARY_ASSIGN_OR_RETURN(more_, Advance());
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> CsvInput::Advance() {
  ++row_;
  return rows_.Next(&fields_);
}

std::string CsvInput::OtherDelimiterHint() const {
  const char delimiter = table_.delimiter()[0];
  const char other = OtherDelimiter(fields_, delimiter);
  if (other == 0) return "";
  return absl::StrCat("; the fields seem to be separated by ",
                      Quoted(absl::string_view(&other, 1)),
                      ", and those of the training data by ",
                      Quoted(table_.delimiter()));
}

absl::StatusOr<int> CsvInput::Find(const v1::CsvColumn& column) const {
  if (column.name().empty()) {
    const int number = column.index();
    const bool later = without_label_ && number > table_.label().index();
    const int index = later ? number - 1 : number;
    // The training header has no name for this column, or has the name twice.
    if (!header_.empty() && !header_[index].empty() &&
        std::count(header_.begin(), header_.end(), header_[index]) == 1) {
      return rows_.Error(absl::StrCat(
          "wanted the columns in the order of the training data, where column ",
          index, " has no name or a name that appears twice, got ",
          Quoted(header_[index])));
    }
    return index;
  }
  const auto found = std::find(header_.begin(), header_.end(), column.name());
  if (found == header_.end()) {
    std::string hint = OtherDelimiterHint();
    const std::string near = NearestColumn(column.name(), header_);
    if (hint.empty() && !near.empty()) {
      hint = absl::StrCat("; did you mean ", Quoted(near), "?");
    }
    return rows_.Error(
        absl::StrCat("wanted a column ", Quoted(column.name()),
                     " as in the training data, the header has none", hint));
  }
  if (std::find(found + 1, header_.end(), column.name()) != header_.end()) {
    return rows_.Error(absl::StrCat("column ", Quoted(column.name()),
                                    " appears twice in the header"));
  }
  return static_cast<int>(found - header_.begin());
}

absl::Status CsvInput::FindColumns() {
  bool by_number = !table_.header();
  for (const v1::CsvColumn& column : table_.numeric()) {
    by_number |= column.name().empty();
  }
  for (const v1::CsvCategories& one : table_.categorical()) {
    by_number |= one.column().name().empty();
  }
  if (by_number && num_columns_ != table_.columns()) {
    without_label_ = num_columns_ == table_.columns() - 1;
    if (!without_label_ || options_.labels) {
      return rows_.Error(absl::StrCat(
          "wanted ", table_.columns(), " columns",
          options_.labels ? ""
                          : absl::StrCat(", or ", table_.columns() - 1,
                                         " without the label"),
          ", got ", num_columns_, OtherDelimiterHint()));
    }
  }
  for (const v1::CsvColumn& column : table_.numeric()) {
    TRIBUTARY_ASSIGN_OR_RETURN(const int found, Find(column));
    numeric_.push_back(found);
  }
  for (const v1::CsvCategories& one : table_.categorical()) {
    TRIBUTARY_ASSIGN_OR_RETURN(const int found, Find(one.column()));
    categories_.push_back({.column = found,
                           .width = one.categories_size(),
                           .numbers = Numbered(one.categories())});
  }
  if (options_.labels) {
    TRIBUTARY_ASSIGN_OR_RETURN(label_, Find(table_.label()));
  }
  return absl::OkStatus();
}

absl::StatusOr<RawData> CsvInput::Next(int64_t most) {
  RawData data;
  data.name = file_->name();
  data.feature_shape = {preprocessing_.feature_shape().begin(),
                        preprocessing_.feature_shape().end()};
  data.numeric_width = static_cast<int64_t>(numeric_.size());
  data.offsets = OffsetsOf(preprocessing_);
  for (const Categories& one : categories_) {
    data.code_widths.push_back(one.width);
  }
  data.targets = EmptyTargets(preprocessing_, options_);
  const int64_t count = options_.range.count;
  while (more_ && data.rows < most &&
         (count == 0 || row_ - options_.range.first < count)) {
    TRIBUTARY_RETURN_IF_ERROR(CheckWidth());
    if (!SkipsRow()) {
      TRIBUTARY_RETURN_IF_ERROR(ReadRow(&data));
    } else if (skipped_++ == 0) {
      first_skipped_ = rows_.line();
    }
    TRIBUTARY_ASSIGN_OR_RETURN(more_, Advance());
  }
  return data;
}

absl::Status CsvInput::CheckWidth() const {
  if (static_cast<int>(fields_.size()) == num_columns_) return absl::OkStatus();
  return rows_.Error(absl::StrCat("wanted ", num_columns_, " fields, got ",
                                  fields_.size(), OtherDelimiterHint()));
}

bool CsvInput::SkipsRow() const {
  if (!options_.labels || !table_.skip_missing()) return false;
  const auto missing = [this](int column) { return IsMissing(column); };
  return LabelIsMissing() ||
         std::any_of(numeric_.begin(), numeric_.end(), missing) ||
         std::any_of(
             categories_.begin(), categories_.end(),
             [&](const Categories& one) { return missing(one.column); });
}

absl::Status CsvInput::ReadNumber(int number, RawData* data) const {
  const int column = numeric_[number];
  double value;
  if (IsMissing(column)) {
    if (table_.skip_missing()) return SkippedInTraining(column);
    value = table_.fill(number);
  } else if (!ParseCsvNumber(fields_[column], &value)) {
    return FieldError(column, "a number", NumberHint(fields_[column]));
  }
  data->AppendNumber(value);
  return absl::OkStatus();
}

absl::Status CsvInput::SkippedInTraining(int column) const {
  return FieldError(column,
                    "a value, because the model was trained without rows that "
                    "lack one (missing: skip)");
}

absl::Status CsvInput::ReadRow(RawData* data) {
  for (size_t i = 0; i < numeric_.size(); ++i) {
    TRIBUTARY_RETURN_IF_ERROR(ReadNumber(static_cast<int>(i), data));
  }
  for (Categories& one : categories_) {
    TRIBUTARY_RETURN_IF_ERROR(ReadCategory(&one, data));
  }
  ++data->rows;
  return options_.labels ? ReadLabel(data) : absl::OkStatus();
}

absl::Status CsvInput::ReadCategory(Categories* categories, RawData* data) {
  const absl::string_view text = fields_[categories->column];
  if (IsMissing(categories->column)) {
    if (table_.skip_missing()) return SkippedInTraining(categories->column);
    data->codes.push_back(-1);
    return absl::OkStatus();
  }
  const auto found = categories->numbers.find(text);
  if (found != categories->numbers.end()) {
    data->codes.push_back(found->second);
    return absl::OkStatus();
  }
  if (!options_.allow_unknown) {
    return FieldError(categories->column,
                      "a category of the training data (--allow-unknown makes "
                      "it none of them)");
  }
  data->codes.push_back(-1);
  if (categories->unknown++ == 0) {
    categories->first_unknown = std::string(text);
    categories->first_line = rows_.line();
  }
  return absl::OkStatus();
}

absl::Status CsvInput::ReadLabel(RawData* data) {
  const absl::string_view text = fields_[label_];
  if (LabelIsMissing()) return FieldError(label_, "a label");
  double value;
  if (!classes_.empty() && data->targets.kind != TargetKind::kReal) {
    const auto found = classes_.find(text);
    if (found == classes_.end()) {
      return FieldError(label_, "one of the training data's labels");
    }
    value = found->second;
  } else if (!ParseCsvNumber(text, &value)) {
    return FieldError(label_, "a number");
  }
  const absl::Status appended = data->targets.Append(value);
  if (!appended.ok()) return rows_.Error(appended.message());
  if (data->targets.kind == TargetKind::kClass) {
    data->targets.Greatest(
        static_cast<int64_t>(value),
        absl::StrCat(file_->name(), ": line ", rows_.line()));
  }
  return absl::OkStatus();
}

std::vector<std::string> CsvInput::TakeWarnings() {
  std::vector<std::string> warnings;
  if (skipped_ > 0) {
    warnings.push_back(absl::StrCat(
        file_->name(), ": ", skipped_,
        " rows are left out because a value is missing (first in line ",
        first_skipped_, ")"));
    skipped_ = 0;
  }
  for (Categories& one : categories_) {
    if (one.unknown == 0) continue;
    warnings.push_back(absl::StrCat(
        file_->name(), ": column ", CsvColumnText(header_, one.column), ": ",
        one.unknown,
        " rows have a category that the training data does not have (first ",
        Quoted(one.first_unknown), " in line ", one.first_line, ")"));
    one.unknown = 0;
  }
  return warnings;
}

}  // namespace

absl::StatusOr<std::unique_ptr<InputRows>> OpenCsvInput(
    const v1::Preprocessing& preprocessing, const InputOptions& options) {
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file,
                             InputFile::Open(options.path));
  auto input =
      std::make_unique<CsvInput>(std::move(file), preprocessing, options);
  TRIBUTARY_RETURN_IF_ERROR(input->Begin());
  return input;
}

}  // namespace tributary
