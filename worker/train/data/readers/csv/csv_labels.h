// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/train/data/raw_data.h"
#include "worker/train/data/readers/csv/csv_missing.h"
#include "worker/train/data/readers/csv/csv_reader.h"
#include "worker/train/data/readers/csv/csv_rows.h"
#include "worker/train/data/readers/input_files.h"
#include "worker/train/data/readers/word_list.h"

namespace tributary {

// The labels of a table, which are words until the whole table is read. The
// arguments of the constructor must outlive this object.
class CsvLabels {
 public:
  CsvLabels(const InputFiles& files, const CsvOptions& options,
            TargetKind kind);

  // The column for messages (CsvColumnText), known with the header.
  void SetColumn(std::string column) { column_ = std::move(column); }
  // True for a missing label, unless it is a class that the job names.
  bool IsMissing(absl::string_view text) const {
    return missing_.Contains(text) && !classes_.contains(text);
  }
  // InvalidArgument, with the line of `rows`, for a missing label.
  absl::Status CheckThere(absl::string_view text, const CsvRows& rows) const;
  // Adds a label of kClass or kBinary from line `line` of a file and returns
  // the number of its word.
  int32_t Add(absl::string_view text, int file, int64_t line) {
    return words_.Add(text, file, line);
  }
  // An error if a word usually stands for a missing label, such as "NA", and is
  // not a class that the job names, or if two words are spellings of one
  // number, such as "1" and "1.0". Call it after the last word.
  absl::Status CheckWords() const;

  const WordList& words() const { return words_; }
  // Returns the names of the classes, by class number: in the job's order, or
  // sorted by bytes. Empty if every label is a number.
  std::vector<std::string> Classes() const;
  // Returns the value of each word. Fails if a word is not among the classes of
  // the training data.
  absl::StatusOr<std::vector<double>> Values(
      const std::vector<std::string>& classes) const;

 private:
  bool AreNumbers() const;
  absl::Status CheckSpellings() const;
  absl::Status Error(const WordList::Word& word,
                     absl::string_view wanted) const;

  const InputFiles& files_;
  const CsvOptions& options_;
  const TargetKind kind_;
  const MissingFields missing_;
  const absl::flat_hash_set<std::string> classes_;  // that the job names
  std::string column_;
  WordList words_;
};

}  // namespace tributary
