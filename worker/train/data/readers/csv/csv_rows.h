// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/train/data/readers/input_file.h"

namespace tributary {

// Splits delimited text into rows (RFC 4180): a field in double quotes may
// contain delimiters, line ends and doubled quotes; lines end in LF or CRLF.
// Empty lines and UTF-8 byte order marks are skipped.
class CsvRows {
 public:
  CsvRows(InputFile* file, char delimiter)
      : file_(file), delimiter_(delimiter) {}

  // Reads the fields of the next row, which are valid until the next call.
  // Returns false at the end. InvalidArgument, with the line, for misplaced and
  // unclosed quotes, for a carriage return outside of quotes, and for rows
  // above 16 MiB; without a line for a file in another format.
  absl::StatusOr<bool> Next(std::vector<absl::string_view>* fields);

  int64_t line() const { return line_; }  // where the row begins, from 1
  // InvalidArgument with the text "train.csv: line 7: " + text.
  absl::Status Error(absl::string_view text) const;
  const std::string& file_name() const { return file_->name(); }

 private:
  absl::StatusOr<bool> AppendLine();  // to record_; false at the end
  absl::Status CheckFormat() const;   // by the first bytes
  absl::Status LoneReturnError() const;
  absl::Status Split(std::vector<absl::string_view>* fields);
  // Both start at record_[*position] and advance it past the field.
  absl::StatusOr<absl::string_view> QuotedField(size_t* position);
  absl::StatusOr<absl::string_view> PlainField(size_t* position);

  InputFile* const file_;
  const char delimiter_;
  std::string input_;  // a piece of the file, consumed up to position_
  size_t position_ = 0;
  std::string record_;       // the row; its fields are unquoted in place
  bool has_return_ = false;  // record_ has a carriage return
  int64_t line_ = 0;
  int64_t next_line_ = 1;
};

}  // namespace tributary
