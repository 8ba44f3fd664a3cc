// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/csv/csv_table.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/status/about_field.h"
#include "common/status/cause.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"
#include "common/status/utf8.h"
#include "worker/train/data/readers/csv/csv_fields.h"
#include "worker/train/data/readers/csv/csv_header.h"
#include "worker/train/data/readers/csv/csv_hints.h"
#include "worker/train/data/readers/foreign_format.h"

namespace tributary {
namespace {

constexpr int64_t kMaxFeatures = 1 << 20;
constexpr int64_t kSinkRows = 4096;
constexpr char kLooksLikeData[] = "which looks like data";

}  // namespace

CsvTable::CsvTable(const InputFiles& files, const CsvOptions& options,
                   TargetKind kind, CsvSink sink)
    : files_(files),
      options_(options),
      missing_(options.missing.texts),
      labels_(files, options, kind),
      sink_(std::move(sink)) {
  data_.name = files.name();
  data_.targets.kind = kind;
  data_.offsets = options.offsets;
}

absl::Status CsvTable::ColumnError(int column, absl::string_view wanted,
                                   absl::string_view got) const {
  std::string hint =
      absl::StrCat(NumberHint(got), MissingHint(options_.missing, got));
  if (hint.empty()) hint = DelimiterHint(fields_, options_.delimiter);
  return AboutField(
      rows_->Error(absl::StrCat(
          CsvFieldError(CsvColumnText(header_, column), wanted, got), hint)),
      roles_.FieldOf(column));
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
  return file == 0 ? CheckFirstRow() : absl::OkStatus();
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

absl::Status CsvTable::NotUtf8Error(const std::string& place) const {
  return absl::InvalidArgumentError(
      absl::StrCat(place, " is not UTF-8, so convert the file, as in: ",
                   ConvertCommand("iconv -f WINDOWS-1252 -t UTF-8",
                                  file_->name(), "", file_->packed())));
}

absl::Status CsvTable::CheckUtf8(const WordList& words, int column) const {
  const auto word = absl::c_find_if(
      words.words(), [](const auto& one) { return !IsUtf8(one.text); });
  if (word == words.words().end()) return absl::OkStatus();
  return NotUtf8Error(absl::StrCat(
      files_.name(word->first_file), ": line ", word->first_line, ": column ",
      CsvColumnText(header_, column), ": ", Quoted(word->text)));
}

absl::Status CsvTable::ReadHeader() {
  num_columns_ = static_cast<int>(fields_.size());
  if (options_.header) {
    for (absl::string_view field : fields_) header_.emplace_back(field);
  }
  header_line_ = rows_->line();
  if (!absl::c_all_of(header_, IsUtf8)) {
    return NotUtf8Error(
        absl::StrCat(file_->name(), ": line ", header_line_, ": the header"));
  }
  absl::StatusOr<CsvColumnRoles> roles =
      ResolveCsvColumns(options_.columns, header_, num_columns_, file_->name());
  if (!roles.ok()) return ColumnsError(roles.status());
  roles_ = *std::move(roles);
  labels_.SetColumn(CsvColumnText(header_, roles_.label));
  categories_.resize(roles_.categorical.size());
  data_.numeric_width = static_cast<int64_t>(roles_.numeric.size());
  return absl::OkStatus();
}

absl::Status CsvTable::HeaderError(absl::string_view name,
                                   absl::string_view why) const {
  return absl::InvalidArgumentError(absl::StrCat(
      files_.name(), ": line ", header_line_, ": ", NoHeaderText(name, why)));
}

absl::Status CsvTable::ColumnsError(const absl::Status& error) {
  std::string hint = DelimiterHint(fields_, options_.delimiter);
  const absl::StatusOr<bool> more = rows_->Next(&fields_);
  more_ = more.ok() && *more;
  const std::string data = DataInHeader();
  if (hint.empty() && !data.empty()) {
    hint = absl::StrCat("; ", NoHeaderText(data, kLooksLikeData));
  }
  return WithMessage(error,
                     absl::StrCat(absl::string_view(error.message()), hint));
}

std::string CsvTable::DataInHeader() {
  const auto next =
      absl::MakeConstSpan(fields_).first(more_ ? fields_.size() : 0);
  std::vector<int> telling(header_.size());
  if (roles_.numeric.empty() && roles_.categorical.empty()) {  // not known
    std::iota(telling.begin(), telling.end(), 0);
  } else {
    telling = roles_.numeric;
    telling.push_back(roles_.label);
  }
  header_in_doubt_ = options_.doubt_header && !roles_.uses_words &&
                     !HasWordAboveNumber(header_, next, telling, missing_);
  return header_in_doubt_ ? DataAmongNames(header_, missing_) : "";
}

absl::Status CsvTable::CheckFirstRow() {
  const std::string data = DataInHeader();
  return data.empty() ? absl::OkStatus() : HeaderError(data, kLooksLikeData);
}

absl::Status CsvTable::CheckWordsOfHeader() const {
  if (!header_in_doubt_) return absl::OkStatus();
  const auto check = [this](const WordList& words, int column) {
    const WordList::Word* word = words.Find(header_[column]);
    if (word == nullptr || word->text.empty()) return absl::OkStatus();
    return HeaderError(word->text,
                       absl::StrCat("which is a value of this column in line ",
                                    word->first_line));
  };
  for (size_t i = 0; i < categories_.size(); ++i) {
    TRIBUTARY_RETURN_IF_ERROR(check(categories_[i], roles_.categorical[i]));
  }
  return check(labels_.words(), roles_.label);
}

// Concatenated files repeat the header.
bool CsvTable::RepeatsHeader() const {
  return roles_.uses_words && fields_[roles_.label] == header_[roles_.label] &&
         std::equal(fields_.begin(), fields_.end(), header_.begin(),
                    header_.end());
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
    if (!goes_on) break;
  }
  TRIBUTARY_RETURN_IF_ERROR(ResolveRange(range, row_, data_.name).status());
  TRIBUTARY_RETURN_IF_ERROR(CheckWordsOfHeader());
  for (size_t i = 0; i < categories_.size(); ++i) {
    TRIBUTARY_RETURN_IF_ERROR(CheckUtf8(categories_[i], roles_.categorical[i]));
  }
  TRIBUTARY_RETURN_IF_ERROR(CheckUtf8(labels_.words(), roles_.label));
  TRIBUTARY_RETURN_IF_ERROR(labels_.CheckWords());
  if (sink_ != nullptr) TRIBUTARY_RETURN_IF_ERROR(Flush());
  if (flushed_ + data_.rows > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      data_.name, ": no row is left, because each has a missing value"));
}

absl::StatusOr<bool> CsvTable::ReadFile() {
  const RowRange& range = options_.range;
  const bool skip = options_.missing.kind == CsvMissing::Kind::kSkip;
  for (; more_; ++row_) {
    if (range.count > 0 && row_ - range.first == range.count) return false;
    if (static_cast<int>(fields_.size()) != num_columns_) {
      return rows_->Error(
          absl::StrCat("wanted ", num_columns_, " fields, got ", fields_.size(),
                       DelimiterHint(fields_, options_.delimiter)));
    }
    if (RepeatsHeader()) {
      return rows_->Error("this is the header again; take the line out");
    }
    if (row_ >= range.first && !(skip && HasMissing())) {
      TRIBUTARY_RETURN_IF_ERROR(ReadRow());
    }
    TRIBUTARY_ASSIGN_OR_RETURN(more_, rows_->Next(&fields_));
  }
  return true;
}

bool CsvTable::HasMissing() const {
  const auto missing = [this](int column) {
    return missing_.Contains(fields_[column]);
  };
  return labels_.IsMissing(fields_[roles_.label]) ||
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
  data_.AppendNumber(value, IsExactCsvNumber(text, value));
  return absl::OkStatus();
}

absl::Status CsvTable::ReadRow() {
  for (int column : roles_.numeric) {
    TRIBUTARY_RETURN_IF_ERROR(ReadNumber(column));
  }
  for (size_t i = 0; i < categories_.size(); ++i) {
    const absl::string_view text = fields_[roles_.categorical[i]];
    const bool none = options_.missing.fills() && missing_.Contains(text);
    data_.codes.push_back(
        none ? -1 : categories_[i].Add(text, current_, rows_->line()));
  }
  ++data_.rows;
  TRIBUTARY_RETURN_IF_ERROR(ReadLabel(fields_[roles_.label]));
  return sink_ != nullptr && data_.rows == kSinkRows ? Flush()
                                                     : absl::OkStatus();
}

absl::Status CsvTable::Flush() {
  TRIBUTARY_RETURN_IF_ERROR(sink_(data_, label_words_));
  flushed_ += data_.rows;
  data_.rows = 0;
  data_.numbers.clear();
  data_.codes.clear();
  data_.targets.values.clear();
  label_words_.clear();
  return absl::OkStatus();
}

absl::Status CsvTable::ReadLabel(absl::string_view text) {
  TRIBUTARY_RETURN_IF_ERROR(labels_.CheckThere(text, *rows_));
  if (data_.targets.kind != TargetKind::kReal) {
    label_words_.push_back(labels_.Add(text, current_, rows_->line()));
    return absl::OkStatus();
  }
  double value;
  if (!ParseCsvNumber(text, &value)) {
    return ColumnError(roles_.label, "a number", text);
  }
  return data_.targets.Append(value, IsExactCsvNumber(text, value));
}

CsvWords CsvTable::Words() const {
  CsvWords words{
      .header = header_, .num_columns = num_columns_, .roles = roles_};
  for (const WordList& list : categories_) {
    words.categories.push_back(list.Sorted());
  }
  words.classes = labels_.Classes();
  return words;
}

absl::Status CsvTable::CheckColumns(const CsvWords& words) const {
  if (words.categories.size() == categories_.size()) {
    return CheckColumnsAlike(
        roles_, header_, words.roles, words.header,
        absl::StrCat(files_.name(), ": line ", header_line_));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(data_.name, ": wanted ", words.categories.size(),
                   " categorical columns as in the training data, got ",
                   categories_.size()));
}

void CsvTable::FindGreatestLabel(const std::vector<double>& labels,
                                 Targets* targets) const {
  const auto greatest = std::max_element(labels.begin(), labels.end());
  if (greatest == labels.end()) return;
  const WordList::Word& word =
      labels_.words().words()[greatest - labels.begin()];
  targets->Greatest(
      static_cast<int64_t>(*greatest),
      absl::StrCat(files_.name(word.first_file), ": line ", word.first_line));
}

absl::StatusOr<CsvMeanings> CsvTable::Meanings(const CsvWords& words) const {
  CsvMeanings meanings;
  meanings.layout.name = data_.name;
  meanings.layout.numeric_width = data_.numeric_width;
  meanings.layout.offsets = data_.offsets;
  meanings.layout.rounding = data_.rounding;
  meanings.layout.targets.kind = data_.targets.kind;
  meanings.layout.targets.rounding = data_.targets.rounding;
  if (data_.targets.kind != TargetKind::kReal) {
    TRIBUTARY_ASSIGN_OR_RETURN(meanings.labels, labels_.Values(words.classes));
    meanings.layout.targets.class_names = words.classes;
    FindGreatestLabel(meanings.labels, &meanings.layout.targets);
  }
  int64_t features = data_.numeric_width;
  for (size_t i = 0; i < categories_.size(); ++i) {
    meanings.codes.push_back(categories_[i].PlacesIn(words.categories[i]));
    meanings.layout.code_widths.push_back(
        static_cast<int64_t>(words.categories[i].size()));
    features += meanings.layout.code_widths.back();
  }
  if (features > kMaxFeatures) {
    return absl::InvalidArgumentError(
        absl::StrCat(data_.name, ": the categorical columns make ", features,
                     " features, more than ", kMaxFeatures));
  }
  meanings.layout.feature_shape = {features};
  return meanings;
}

absl::StatusOr<RawData> CsvTable::Finish(const CsvWords& words) {
  TRIBUTARY_ASSIGN_OR_RETURN(const CsvMeanings meanings, Meanings(words));
  data_.targets.class_names = meanings.layout.targets.class_names;
  data_.targets.Greatest(meanings.layout.targets.greatest_class,
                         meanings.layout.targets.greatest_place);
  for (int32_t word : label_words_) {
    TRIBUTARY_RETURN_IF_ERROR(data_.targets.Append(meanings.labels[word]));
  }
  const size_t columns = categories_.size();
  for (size_t i = 0; i < data_.codes.size(); ++i) {
    if (data_.codes[i] < 0) continue;  // missing
    data_.codes[i] = meanings.codes[i % columns][data_.codes[i]];
  }
  data_.code_widths = meanings.layout.code_widths;
  data_.feature_shape = meanings.layout.feature_shape;
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
        " rows have a category that the training data does not have (first ",
        Quoted(first->text), " in line ", first->first_line,
        first->first_file == 0
            ? ""
            : absl::StrCat(" of ", files_.name(first->first_file)),
        ")"));
  }
}

}  // namespace tributary
