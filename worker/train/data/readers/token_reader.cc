// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/token_reader.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/status/status_macros.h"
#include "common/status/utf8.h"

namespace tributary {
namespace {

constexpr size_t kPieceBytes = 256 << 10;
constexpr size_t kLongestCharacter = 4;

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

// The length of the byte order mark of UTF-8 at the beginning of a file.
// InvalidArgument for the mark of UTF-16.
absl::StatusOr<size_t> SkipByteOrderMark(const InputFile& file,
                                         absl::string_view begin) {
  if (absl::StartsWith(begin, "\xEF\xBB\xBF")) return 3;
  const bool little = absl::StartsWith(begin, "\xFF\xFE");
  if (!little && !absl::StartsWith(begin, "\xFE\xFF")) return 0;
  return absl::InvalidArgumentError(absl::StrCat(
      file.name(),
      ": offset 0: begins with the byte order mark of UTF-16, wanted UTF-8; "
      "convert it with iconv -f UTF-16 -t UTF-8"));
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
  if (!begun_ && !bytes_) {
    TRIBUTARY_ASSIGN_OR_RETURN(position_, SkipByteOrderMark(*file_, piece_));
  }
  begun_ = true;
  return absl::OkStatus();
}

absl::Status TokenReader::WrongByte() const {
  if (end_ && piece_.size() - position_ < kLongestCharacter) {
    // Any continuation would do.
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
