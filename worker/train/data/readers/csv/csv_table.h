// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/train/data/raw_data.h"
#include "worker/train/data/readers/csv/csv_labels.h"
#include "worker/train/data/readers/csv/csv_missing.h"
#include "worker/train/data/readers/csv/csv_reader.h"
#include "worker/train/data/readers/csv/csv_rows.h"
#include "worker/train/data/readers/input_files.h"
#include "worker/train/data/readers/word_list.h"

namespace tributary {

// Takes the rows of a table, a part at a time. `rows` has numbers, codes (word
// numbers) and, for kReal, targets. label_words: for the other kinds, the
// number of the word of each row's label.
using CsvSink = std::function<absl::Status(
    const RawData& rows, absl::Span<const int32_t> label_words)>;

// The meaning of the words of a table.
struct CsvMeanings {
  RawData layout;  // without rows
  // For each categorical column, the code of each word.
  std::vector<std::vector<int32_t>> codes;
  std::vector<double> labels;  // the value of each label; empty for kReal
};

// The rows of some files, with words numbered in the order of the files. The
// arguments of the constructor must outlive this object.
class CsvTable {
 public:
  // With a sink, the rows go to the sink and not into Finish's result.
  CsvTable(const InputFiles& files, const CsvOptions& options, TargetKind kind,
           CsvSink sink = nullptr);

  absl::Status Read();
  // Errors name a label that is not among `words`.
  absl::StatusOr<CsvMeanings> Meanings(const CsvWords& words) const;
  // Replaces words by their values and returns the rows. The table is empty
  // afterwards.
  absl::StatusOr<RawData> Finish(const CsvWords& words);
  CsvWords Words() const;
  // An error unless there are as many categorical columns as in training, and
  // the columns that are found by their position have the same names.
  absl::Status CheckColumns(const CsvWords& words) const;
  // Adds a warning for each column with categories that `words` lacks.
  void ReportUnknown(const CsvWords& words,
                     std::vector<std::string>* warnings) const;

 private:
  // Opens a file and reads its header. Later files must have the first one's.
  absl::Status Begin(int file);
  absl::Status ReadHeader();
  absl::Status CheckHeader() const;
  // With doubt_header, an error when the first row looks like data, judged by
  // itself and by the rows that follow.
  absl::Status CheckFirstRow();
  // Decides whether the header may be data. Returns the field that looks like
  // data, or nothing.
  std::string DataInHeader();
  // Appends a hint to `error`, which is about the columns: what may be wrong
  // with the header.
  absl::Status ColumnsError(const absl::Status& error);
  absl::Status CheckWordsOfHeader() const;
  // Returns the error about text at `place` that is not UTF-8, as in "t.csv:
  // line 2: ...".
  absl::Status NotUtf8Error(const std::string& place) const;
  absl::Status CheckUtf8(const WordList& words, int column) const;
  absl::Status HeaderError(absl::string_view name, absl::string_view why) const;
  bool RepeatsHeader() const;
  // Reads the rows of the current file that are in the range. Returns false if
  // the range ends in this file.
  absl::StatusOr<bool> ReadFile();
  absl::Status ReadRow();
  // Gives the rows to the sink.
  absl::Status Flush();
  absl::Status ReadNumber(int column);
  absl::Status ReadLabel(absl::string_view text);
  // Whether a used column of the current row has no value.
  bool HasMissing() const;
  // `labels`: the value of each word of labels_.
  void FindGreatestLabel(const std::vector<double>& labels,
                         Targets* targets) const;
  absl::Status ColumnError(int column, absl::string_view wanted,
                           absl::string_view got) const;

  const InputFiles& files_;
  const CsvOptions& options_;
  const MissingFields missing_;
  int current_ = 0;  // the number of the file
  std::unique_ptr<InputFile> file_;
  std::optional<CsvRows> rows_;            // of file_
  std::vector<absl::string_view> fields_;  // of the current row
  bool more_ = false;                      // fields_ are a row to read
  int64_t row_ = 0;                        // the row's number in all files
  std::vector<std::string> header_;        // empty when the file has none
  int64_t header_line_ = 0;
  bool header_in_doubt_ = false;  // it may be data
  int num_columns_ = 0;
  CsvColumnRoles roles_;
  std::vector<WordList> categories_;
  CsvLabels labels_;
  std::vector<int32_t> label_words_;  // of each row
  RawData data_;
  const CsvSink sink_;   // or null
  int64_t flushed_ = 0;  // rows that went to the sink
};

}  // namespace tributary
