#include "worker/data/readers/csv_reader.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status/status_macros.h"
#include "worker/data/readers/csv_fields.h"
#include "worker/data/readers/csv_rows.h"
#include "worker/data/readers/word_list.h"

namespace tributary {
namespace {

constexpr int64_t kMaxFeatures = 1 << 20;

// The rows of a file, with words numbered in the order of the file.
class CsvTable {
 public:
  CsvTable(InputFile* file, const CsvOptions& options, TargetKind kind)
      : file_(file),
        options_(options),
        missing_(options.missing.texts),
        rows_(file, options.delimiter) {
    data_.name = file->name();
    data_.targets.kind = kind;
  }

  absl::Status Read();
  // Replaces words by their indices in `words`. The table is empty afterwards.
  absl::StatusOr<RawData> Finish(const CsvWords& words);
  CsvWords Words() const;
  // An error unless there are as many categorical columns as in training.
  absl::Status CheckColumns(const CsvWords& words) const;
  // Adds a warning for each column with categories that `words` lacks.
  void ReportUnknown(const CsvWords& words,
                     std::vector<std::string>* warnings) const;

 private:
  absl::Status ReadHeader();
  absl::Status ReadRow();
  absl::Status ReadNumber(int column);
  absl::Status ReadLabel(absl::string_view text);
  // Whether a column of the current row that is used has no value.
  bool HasMissing() const;
  absl::Status LabelMissing(absl::string_view text) const;
  absl::Status FinishLabels(const CsvWords& words);
  absl::Status ColumnError(int column, absl::string_view wanted,
                           absl::string_view got) const;
  absl::Status LabelError(const WordList::Word& word,
                          absl::string_view wanted) const;
  // True when every label is a number that the kind takes.
  bool LabelsAreNumbers() const;

  InputFile* const file_;
  const CsvOptions& options_;
  const MissingFields missing_;
  CsvRows rows_;
  std::vector<absl::string_view> fields_;  // of the current row
  std::vector<std::string> header_;        // empty when the file has none
  int num_columns_ = 0;
  CsvColumnRoles roles_;
  std::vector<WordList> categories_;
  WordList labels_;                   // kClass and kBinary
  std::vector<int32_t> label_words_;  // of each row
  RawData data_;
};

absl::Status CsvTable::ColumnError(int column, absl::string_view wanted,
                                   absl::string_view got) const {
  return rows_.Error(
      absl::StrCat(CsvFieldError(CsvColumnText(header_, column), wanted, got),
                   MissingHint(options_.missing, got)));
}

absl::Status CsvTable::ReadHeader() {
  TRIBUTARY_ASSIGN_OR_RETURN(const bool any, rows_.Next(&fields_));
  if (!any) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_->name(), ": wanted rows, but the file is empty"));
  }
  num_columns_ = static_cast<int>(fields_.size());
  if (options_.header) {
    for (absl::string_view field : fields_) header_.emplace_back(field);
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      roles_, ResolveCsvColumns(options_.columns, header_, num_columns_,
                                file_->name()));
  categories_.resize(roles_.categorical.size());
  data_.numeric_width = static_cast<int64_t>(roles_.numeric.size());
  return absl::OkStatus();
}

absl::Status CsvTable::Read() {
  const RowRange& range = options_.range;
  // Rejects negative numbers only, since the file's length is not known yet.
  TRIBUTARY_RETURN_IF_ERROR(
      ResolveRange(range, std::numeric_limits<int64_t>::max(), file_->name())
          .status());
  TRIBUTARY_RETURN_IF_ERROR(ReadHeader());
  bool more = true;
  if (options_.header) {
    TRIBUTARY_ASSIGN_OR_RETURN(more, rows_.Next(&fields_));
  }
  int64_t row = 0;
  for (; more; ++row) {
    if (range.count > 0 && row - range.first == range.count) {
      break;
    }
    if (static_cast<int>(fields_.size()) != num_columns_) {
      return rows_.Error(absl::StrCat("wanted ", num_columns_, " fields, got ",
                                      fields_.size()));
    }
    const bool skip = options_.missing.kind == CsvMissing::Kind::kSkip;
    if (row >= range.first && !(skip && HasMissing())) {
      TRIBUTARY_RETURN_IF_ERROR(ReadRow());
    }
    TRIBUTARY_ASSIGN_OR_RETURN(more, rows_.Next(&fields_));
  }
  TRIBUTARY_RETURN_IF_ERROR(ResolveRange(range, row, file_->name()).status());
  if (data_.rows > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      file_->name(), ": no row is left, because each has a missing value"));
}

bool CsvTable::HasMissing() const {
  const auto missing = [this](int column) {
    return missing_.Contains(fields_[column]);
  };
  return missing(roles_.label) ||
         std::any_of(roles_.numeric.begin(), roles_.numeric.end(), missing) ||
         std::any_of(roles_.categorical.begin(), roles_.categorical.end(),
                     missing);
}

absl::Status CsvTable::ReadNumber(int column) {
  const absl::string_view text = fields_[column];
  if (options_.missing.fills() && missing_.Contains(text)) {
    data_.numbers.push_back(std::numeric_limits<float>::quiet_NaN());
    return absl::OkStatus();
  }
  double value;
  if (!ParseCsvNumber(text, &value)) {
    return ColumnError(column, "a number", text);
  }
  data_.numbers.push_back(static_cast<float>(value));
  return absl::OkStatus();
}

absl::Status CsvTable::ReadRow() {
  for (int column : roles_.numeric) {
    TRIBUTARY_RETURN_IF_ERROR(ReadNumber(column));
  }
  for (size_t i = 0; i < categories_.size(); ++i) {
    const absl::string_view text = fields_[roles_.categorical[i]];
    const bool none = options_.missing.fills() && missing_.Contains(text);
    data_.codes.push_back(none ? -1 : categories_[i].Add(text, rows_.line()));
  }
  ++data_.rows;
  return ReadLabel(fields_[roles_.label]);
}

absl::Status CsvTable::LabelMissing(absl::string_view text) const {
  return rows_.Error(absl::StrCat(
      CsvFieldError(CsvColumnText(header_, roles_.label), "a label", text),
      "; to leave out such rows, set csv.missing to skip"));
}

absl::Status CsvTable::ReadLabel(absl::string_view text) {
  if (missing_.Contains(text)) return LabelMissing(text);
  if (data_.targets.kind != TargetKind::kReal) {
    label_words_.push_back(labels_.Add(text, rows_.line()));
    return absl::OkStatus();
  }
  double value;
  if (!ParseCsvNumber(text, &value)) {
    return ColumnError(roles_.label, "a number", text);
  }
  return data_.targets.Append(value);
}

bool CsvTable::LabelsAreNumbers() const {
  Targets probe;
  probe.kind = data_.targets.kind;
  for (const WordList::Word& word : labels_.words()) {
    double value;
    if (!ParseCsvNumber(word.text, &value) || !probe.Append(value).ok()) {
      return false;
    }
  }
  return true;
}

CsvWords CsvTable::Words() const {
  CsvWords words{
      .header = header_, .num_columns = num_columns_, .roles = roles_};
  for (const WordList& list : categories_) {
    words.categories.push_back(list.Sorted());
  }
  if (!LabelsAreNumbers()) words.classes = labels_.Sorted();
  return words;
}

absl::Status CsvTable::CheckColumns(const CsvWords& words) const {
  if (words.categories.size() == categories_.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(file_->name(), ": wanted ", words.categories.size(),
                   " categorical columns as in the training data, got ",
                   categories_.size()));
}

absl::Status CsvTable::LabelError(const WordList::Word& word,
                                  absl::string_view wanted) const {
  return absl::InvalidArgumentError(
      absl::StrCat(file_->name(), ": line ", word.first_line, ": column ",
                   CsvColumnText(header_, roles_.label), ": wanted ", wanted,
                   ", got \"", word.text, "\""));
}

absl::Status CsvTable::FinishLabels(const CsvWords& words) {
  const std::vector<WordList::Word>& found = labels_.words();
  const bool binary = data_.targets.kind == TargetKind::kBinary;
  if (binary && !words.classes.empty() && words.classes.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        file_->name(), ": column ", CsvColumnText(header_, roles_.label),
        ": wanted 0 and 1 or two different words as labels, got ",
        words.classes.size(), " different"));
  }
  std::vector<double> value(found.size());
  const std::vector<int32_t> places = labels_.PlacesIn(words.classes);
  for (size_t i = 0; i < found.size(); ++i) {
    if (!words.classes.empty()) {
      if (places[i] < 0) {
        return LabelError(found[i], "one of the training data's labels");
      }
      value[i] = places[i];
      continue;
    }
    Targets probe;
    probe.kind = data_.targets.kind;
    if (!ParseCsvNumber(found[i].text, &value[i]) ||
        !probe.Append(value[i]).ok()) {
      return LabelError(found[i], binary ? "0 or 1 as in the training data"
                                         : "a class number as in the training "
                                           "data");
    }
  }
  data_.targets.class_names = words.classes;
  for (int32_t word : label_words_) {
    TRIBUTARY_RETURN_IF_ERROR(data_.targets.Append(value[word]));
  }
  return absl::OkStatus();
}

absl::StatusOr<RawData> CsvTable::Finish(const CsvWords& words) {
  if (data_.targets.kind != TargetKind::kReal) {
    TRIBUTARY_RETURN_IF_ERROR(FinishLabels(words));
  }
  int64_t features = data_.numeric_width;
  std::vector<std::vector<int32_t>> places;
  for (size_t i = 0; i < categories_.size(); ++i) {
    places.push_back(categories_[i].PlacesIn(words.categories[i]));
    data_.code_widths.push_back(
        static_cast<int64_t>(words.categories[i].size()));
    features += data_.code_widths.back();
  }
  if (features > kMaxFeatures) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_->name(), ": the categorical columns make ", features,
                     " features, more than ", kMaxFeatures));
  }
  const size_t columns = categories_.size();
  for (size_t i = 0; i < data_.codes.size(); ++i) {
    if (data_.codes[i] < 0) continue;  // missing
    data_.codes[i] = places[i % columns][data_.codes[i]];
  }
  data_.feature_shape = {features};
  return std::move(data_);
}

void CsvTable::ReportUnknown(const CsvWords& words,
                             std::vector<std::string>* warnings) const {
  for (size_t i = 0; i < categories_.size(); ++i) {
    const std::vector<int32_t> places =
        categories_[i].PlacesIn(words.categories[i]);
    int64_t rows = 0;
    const WordList::Word* first = nullptr;  // words are in line order
    for (size_t w = 0; w < places.size(); ++w) {
      if (places[w] >= 0) continue;
      rows += categories_[i].words()[w].count;
      if (first == nullptr) first = &categories_[i].words()[w];
    }
    if (first == nullptr) continue;
    warnings->push_back(absl::StrCat(
        file_->name(), ": column ",
        CsvColumnText(header_, roles_.categorical[i]), ": ", rows,
        " rows have a category that the training data does not have (first \"",
        first->text, "\" in line ", first->first_line, ")"));
  }
}

}  // namespace

absl::StatusOr<RawData> ReadTrainingCsv(InputFile* file,
                                        const CsvOptions& options,
                                        TargetKind kind, CsvWords* words) {
  CsvTable table(file, options, kind);
  TRIBUTARY_RETURN_IF_ERROR(table.Read());
  *words = table.Words();
  return table.Finish(*words);
}

absl::StatusOr<RawData> ReadTestCsv(InputFile* file, const CsvOptions& options,
                                    TargetKind kind, const CsvWords& words,
                                    std::vector<std::string>* warnings) {
  CsvTable table(file, options, kind);
  TRIBUTARY_RETURN_IF_ERROR(table.Read());
  TRIBUTARY_RETURN_IF_ERROR(table.CheckColumns(words));
  table.ReportUnknown(words, warnings);
  return table.Finish(words);
}

}  // namespace tributary
