#include "worker/data/readers/csv_reader.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
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

// The rows of some files, with words numbered in the order of the files.
class CsvTable {
 public:
  CsvTable(const InputFiles& files, const CsvOptions& options, TargetKind kind)
      : files_(files), options_(options) {
    data_.name = files.name();
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
  // Opens a file and reads its header. Later files must have the first one's.
  absl::Status Begin(int file);
  absl::Status ReadHeader();
  absl::Status CheckHeader() const;
  // Reads the rows of the current file that are in the range. False: the range
  // ends here.
  absl::StatusOr<bool> ReadFile();
  absl::Status ReadRow();
  absl::Status ReadLabel(absl::string_view text);
  absl::Status FinishLabels(const CsvWords& words);
  absl::Status ColumnError(int column, absl::string_view wanted,
                           absl::string_view got) const;
  absl::Status LabelError(const WordList::Word& word,
                          absl::string_view wanted) const;
  // True when every label is a number that the kind takes.
  bool LabelsAreNumbers() const;

  const InputFiles& files_;
  const CsvOptions& options_;
  int current_ = 0;  // the number of the file
  std::unique_ptr<InputFile> file_;
  std::optional<CsvRows> rows_;            // of file_
  std::vector<absl::string_view> fields_;  // of the current row
  bool more_ = false;                      // fields_ are a row to read
  int64_t row_ = 0;                        // its number among all files' rows
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
  return rows_->Error(
      CsvFieldError(CsvColumnText(header_, column), wanted, got));
}

absl::Status CsvTable::Begin(int file) {
  current_ = file;
  rows_.reset();
  TRIBUTARY_ASSIGN_OR_RETURN(file_, files_.Open(file));
  rows_.emplace(file_.get(), options_.delimiter);
  TRIBUTARY_ASSIGN_OR_RETURN(more_, rows_->Next(&fields_));
  if (!more_) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_->name(), ": wanted rows, but the file is empty"));
  }
  if (file == 0) {
    TRIBUTARY_RETURN_IF_ERROR(ReadHeader());
  } else if (options_.header) {
    TRIBUTARY_RETURN_IF_ERROR(CheckHeader());
  }
  if (!options_.header) return absl::OkStatus();
  TRIBUTARY_ASSIGN_OR_RETURN(more_, rows_->Next(&fields_));
  return absl::OkStatus();
}

absl::Status CsvTable::CheckHeader() const {
  if (fields_.size() != header_.size()) {
    return rows_->Error(absl::StrCat("wanted the ", header_.size(),
                                     " columns of ", files_.name(), ", got ",
                                     fields_.size()));
  }
  for (size_t i = 0; i < header_.size(); ++i) {
    if (fields_[i] == header_[i]) continue;
    return rows_->Error(CsvFieldError(
        absl::StrCat(i),
        absl::StrCat("\"", header_[i], "\" as in ", files_.name()),
        fields_[i]));
  }
  return absl::OkStatus();
}

absl::Status CsvTable::ReadHeader() {
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
      ResolveRange(range, std::numeric_limits<int64_t>::max(), data_.name)
          .status());
  for (size_t file = 0; file < files_.size(); ++file) {
    TRIBUTARY_RETURN_IF_ERROR(Begin(static_cast<int>(file)));
    TRIBUTARY_ASSIGN_OR_RETURN(const bool goes_on, ReadFile());
    if (!goes_on) return absl::OkStatus();
  }
  return ResolveRange(range, row_, data_.name).status();
}

absl::StatusOr<bool> CsvTable::ReadFile() {
  const RowRange& range = options_.range;
  for (; more_; ++row_) {
    if (range.count > 0 && row_ - range.first == range.count) return false;
    if (static_cast<int>(fields_.size()) != num_columns_) {
      return rows_->Error(absl::StrCat("wanted ", num_columns_, " fields, got ",
                                       fields_.size()));
    }
    if (row_ >= range.first) TRIBUTARY_RETURN_IF_ERROR(ReadRow());
    TRIBUTARY_ASSIGN_OR_RETURN(more_, rows_->Next(&fields_));
  }
  return true;
}

absl::Status CsvTable::ReadRow() {
  for (int column : roles_.numeric) {
    double value;
    if (!ParseCsvNumber(fields_[column], &value)) {
      return ColumnError(column, "a number", fields_[column]);
    }
    data_.numbers.push_back(static_cast<float>(value));
  }
  for (size_t i = 0; i < categories_.size(); ++i) {
    const absl::string_view text = fields_[roles_.categorical[i]];
    data_.codes.push_back(categories_[i].Add(text, current_, rows_->line()));
  }
  ++data_.rows;
  return ReadLabel(fields_[roles_.label]);
}

absl::Status CsvTable::ReadLabel(absl::string_view text) {
  if (IsMissingField(text)) return ColumnError(roles_.label, "a label", text);
  if (data_.targets.kind != TargetKind::kReal) {
    label_words_.push_back(labels_.Add(text, current_, rows_->line()));
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
      absl::StrCat(data_.name, ": wanted ", words.categories.size(),
                   " categorical columns as in the training data, got ",
                   categories_.size()));
}

absl::Status CsvTable::LabelError(const WordList::Word& word,
                                  absl::string_view wanted) const {
  return absl::InvalidArgumentError(
      absl::StrCat(files_.name(word.first_file), ": line ", word.first_line,
                   ": column ", CsvColumnText(header_, roles_.label),
                   ": wanted ", wanted, ", got \"", word.text, "\""));
}

absl::Status CsvTable::FinishLabels(const CsvWords& words) {
  const std::vector<WordList::Word>& found = labels_.words();
  const bool binary = data_.targets.kind == TargetKind::kBinary;
  if (binary && !words.classes.empty() && words.classes.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        data_.name, ": column ", CsvColumnText(header_, roles_.label),
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
        absl::StrCat(data_.name, ": the categorical columns make ", features,
                     " features, more than ", kMaxFeatures));
  }
  const size_t columns = categories_.size();
  for (size_t i = 0; i < data_.codes.size(); ++i) {
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
        data_.name, ": column ", CsvColumnText(header_, roles_.categorical[i]),
        ": ", rows,
        " rows have a category that the training data does not have (first \"",
        first->text, "\" in line ", first->first_line,
        first->first_file == 0
            ? ""
            : absl::StrCat(" of ", files_.name(first->first_file)),
        ")"));
  }
}

}  // namespace

absl::StatusOr<RawData> ReadTrainingCsv(const InputFiles& files,
                                        const CsvOptions& options,
                                        TargetKind kind, CsvWords* words) {
  CsvTable table(files, options, kind);
  TRIBUTARY_RETURN_IF_ERROR(table.Read());
  *words = table.Words();
  return table.Finish(*words);
}

absl::StatusOr<RawData> ReadTestCsv(const InputFiles& files,
                                    const CsvOptions& options, TargetKind kind,
                                    const CsvWords& words,
                                    std::vector<std::string>* warnings) {
  CsvTable table(files, options, kind);
  TRIBUTARY_RETURN_IF_ERROR(table.Read());
  TRIBUTARY_RETURN_IF_ERROR(table.CheckColumns(words));
  table.ReportUnknown(words, warnings);
  return table.Finish(words);
}

}  // namespace tributary
