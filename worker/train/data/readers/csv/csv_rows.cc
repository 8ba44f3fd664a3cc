// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/csv/csv_rows.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"
#include "worker/train/data/readers/foreign_format.h"

namespace tributary {
namespace {

constexpr size_t kUnpackedBytes = 256 << 10;
constexpr size_t kMaxRecordBytes = 16 << 20;

}  // namespace

absl::Status CsvRows::Error(absl::string_view text) const {
  return absl::InvalidArgumentError(
      absl::StrCat(file_->name(), ": line ", line_, ": ", text));
}

absl::Status CsvRows::CheckFormat() const {
  const std::string foreign =
      ForeignFormat(input_, file_->name(), file_->packed());
  if (foreign.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(file_->name(), ": ", foreign));
}

absl::Status CsvRows::LoneReturnError() const {
  return Error(absl::StrCat(
      "a carriage return within a row; if a line ends in CR, and not in LF or "
      "CR LF, convert the file, as in: ",
      ConvertCommand("tr '\\r' '\\n'", file_->name(), "", file_->packed())));
}

absl::StatusOr<bool> CsvRows::AppendLine() {
  const size_t start = record_.size();
  while (true) {
    if (position_ == input_.size()) {
      input_.resize(kUnpackedBytes);
      position_ = 0;
      TRIBUTARY_ASSIGN_OR_RETURN(const size_t read,
                                 file_->Read(input_.size(), input_.data()));
      input_.resize(read);
      if (read == 0) break;
      if (file_->offset() == static_cast<int64_t>(read)) {
        TRIBUTARY_RETURN_IF_ERROR(CheckFormat());
      }
    }
    const size_t end = input_.find('\n', position_);
    const size_t stop = end == std::string::npos ? input_.size() : end + 1;
    record_.append(input_, position_, stop - position_);
    position_ = stop;
    if (record_.size() > kMaxRecordBytes) {
      if (absl::StrContains(record_, '\r') && next_line_ == 1) {
        return LoneReturnError();
      }
      return Error("a row of more than 16 MiB; is a quote not closed?");
    }
    if (end != std::string::npos) break;
  }
  if (record_.size() == start) return false;
  ++next_line_;
  return true;
}

absl::StatusOr<bool> CsvRows::Next(std::vector<absl::string_view>* fields) {
  while (true) {
    record_.clear();
    line_ = next_line_;
    // A row continues while a quote is open, which means that its number of
    // quotes is odd.
    int64_t quotes = 0;
    size_t counted = 0;
    do {
      TRIBUTARY_ASSIGN_OR_RETURN(const bool more, AppendLine());
      if (!more) break;
      quotes += std::count(record_.begin() + counted, record_.end(), '"');
      counted = record_.size();
    } while (quotes % 2 != 0);
    if (record_.empty()) return false;
    while (line_ == 1 && absl::StartsWith(record_, "\xEF\xBB\xBF")) {
      record_.erase(0, 3);
    }
    if (!record_.empty() && record_.back() == '\n') record_.pop_back();
    if (!record_.empty() && record_.back() == '\r') record_.pop_back();
    if (record_.empty()) continue;
    has_return_ = absl::StrContains(record_, '\r');
    TRIBUTARY_RETURN_IF_ERROR(Split(fields));
    return true;
  }
}

absl::Status CsvRows::Split(std::vector<absl::string_view>* fields) {
  fields->clear();
  size_t position = 0;
  while (true) {
    const bool quoted = position < record_.size() && record_[position] == '"';
    TRIBUTARY_ASSIGN_OR_RETURN(
        const absl::string_view field,
        quoted ? QuotedField(&position) : PlainField(&position));
    fields->push_back(field);
    if (position == record_.size()) return absl::OkStatus();
    ++position;  // the delimiter
  }
}

absl::StatusOr<absl::string_view> CsvRows::PlainField(size_t* position) {
  const size_t start = *position;
  *position = std::min(record_.find(delimiter_, start), record_.size());
  const absl::string_view field(record_.data() + start, *position - start);
  if (has_return_ && absl::StrContains(field, '\r')) return LoneReturnError();
  if (absl::StrContains(field, '"')) {
    return Error("a quote within a field that does not begin with one");
  }
  return field;
}

absl::StatusOr<absl::string_view> CsvRows::QuotedField(size_t* position) {
  const size_t start = *position + 1;
  size_t out = start;  // unquoting only shortens: writing trails reading
  for (size_t in = start; in < record_.size(); ++in) {
    if (record_[in] != '"') {
      record_[out++] = record_[in];
    } else if (in + 1 < record_.size() && record_[in + 1] == '"') {
      record_[out++] = record_[in++];
    } else if (in + 1 == record_.size() || record_[in + 1] == delimiter_) {
      *position = in + 1;
      return absl::string_view(record_.data() + start, out - start);
    } else if (record_[in + 1] == '\r') {
      return LoneReturnError();
    } else {
      return Error(absl::StrCat(
          "a quote is followed by neither the delimiter, ",
          Quoted(absl::string_view(&delimiter_, 1)), ", nor the end, but by ",
          Quoted(absl::string_view(&record_[in + 1], 1))));
    }
  }
  return Error("a quote is opened here and never closed");
}

}  // namespace tributary
