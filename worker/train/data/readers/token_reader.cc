// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/token_reader.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/status/status_macros.h"
#include "common/status/utf8.h"
#include "worker/train/data/readers/foreign_format.h"

namespace tributary {
namespace {

constexpr size_t kPieceBytes = 256 << 10;
constexpr size_t kLongestCharacter = 4;
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The code point of the first `size` bytes, which are a character.
int32_t CodePoint(absl::string_view text, size_t size) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (size == 1) return lead;
  int32_t code = lead & (0x7F >> size);
  for (size_t k = 1; k < size; ++k) {
    code = code << 6 | (static_cast<unsigned char>(text[k]) & 0x3F);
  }
  return code;
}

}  // namespace

absl::Status TokenReader::Refill() {
  offset_ += static_cast<int64_t>(position_);
  piece_.erase(0, position_);
  position_ = 0;
  const size_t kept = piece_.size();
  piece_.resize(kept + kPieceBytes);
  TRIBUTARY_ASSIGN_OR_RETURN(const size_t read,
                             file_->Read(kPieceBytes, piece_.data() + kept));
  piece_.resize(kept + read);
  end_ = read < kPieceBytes;
  if (std::exchange(begun_, true)) return absl::OkStatus();
  if (!bytes_ && absl::StartsWith(piece_, kByteOrderMark)) {
    position_ = kByteOrderMark.size();
    return absl::OkStatus();
  }
  const std::string foreign =
      ForeignText(piece_, file_->name(), file_->packed(), bytes_);
  if (!foreign.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_->name(), ": ", foreign));
  }
  return absl::OkStatus();
}

absl::Status TokenReader::WrongByte() const {
  if (end_ && piece_.size() - position_ < kLongestCharacter) {
    // Tests whether some continuation would make a character.
    for (const char* more : {"\x80", "\xA0", "\x80\x80", "\xA0\x80",
                             "\x80\x80\x80", "\xA0\x80\x80"}) {
      if (Utf8CharacterSize(absl::StrCat(piece_.substr(position_), more)) > 0) {
        return file_->Error("the file ends within a character");
      }
    }
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: offset %d: byte %02x is not UTF-8 here; for such a file write "
      "tokens: bytes",
      file_->name(), offset_ + static_cast<int64_t>(position_),
      static_cast<unsigned char>(piece_[position_])));
}

absl::StatusOr<absl::Span<const int32_t>> TokenReader::NextPiece() {
  tokens_.clear();
  next_ = 0;
  TRIBUTARY_RETURN_IF_ERROR(error_);
  if (!end_) TRIBUTARY_RETURN_IF_ERROR(Refill());
  while (position_ < piece_.size()) {
    const auto lead = static_cast<unsigned char>(piece_[position_]);
    if (bytes_ || lead < 0x80) {
      tokens_.push_back(lead);
      ++position_;
      continue;
    }
    const absl::string_view rest = absl::string_view(piece_).substr(position_);
    if (rest.size() < kLongestCharacter && !end_) break;
    const size_t size = Utf8CharacterSize(rest);
    if (size == 0) {
      error_ = WrongByte();
      break;
    }
    tokens_.push_back(CodePoint(rest, size));
    position_ += size;
  }
  if (tokens_.empty()) TRIBUTARY_RETURN_IF_ERROR(error_);
  return tokens_;
}

absl::StatusOr<int32_t> TokenReader::Next() {
  if (next_ == tokens_.size()) {
    TRIBUTARY_RETURN_IF_ERROR(NextPiece().status());
    if (tokens_.empty()) return -1;
  }
  return tokens_[next_++];
}

}  // namespace tributary
