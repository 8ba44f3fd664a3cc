// SPDX-License-Identifier: Apache-2.0
#include "worker/predict/inputs/token_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status/status_macros.h"
#include "common/status/utf8.h"
#include "worker/data/readers/text_reader.h"

namespace tributary {
namespace {

constexpr size_t kPieceBytes = 64 << 10;
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

}  // namespace

TokenReader::TokenReader(std::unique_ptr<InputFile> file,
                         const v1::TextTokens& text)
    : file_(std::move(file)), bytes_(text.tokens() == v1::TextSource::BYTES) {
  for (int i = 0; i < text.vocabulary_size(); ++i) {
    ids_[text.vocabulary(i)] = i;
  }
}

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
  return absl::OkStatus();
}

absl::StatusOr<int32_t> TokenReader::NextToken() {
  if (piece_.size() - position_ < kLongestCharacter && !end_) {
    TRIBUTARY_RETURN_IF_ERROR(Refill());
  }
  if (!bytes_ && offset_ + static_cast<int64_t>(position_) == 0) {
    TRIBUTARY_ASSIGN_OR_RETURN(position_,
                               SkipByteOrderMark(file_->name(), piece_));
  }
  const absl::string_view rest = absl::string_view(piece_).substr(position_);
  if (rest.empty()) return -1;
  if (bytes_) {
    ++position_;
    return static_cast<unsigned char>(rest[0]);
  }
  const size_t size = Utf8CharacterSize(rest);
  if (size == 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: offset %d: byte %02x is not UTF-8 here", file_->name(),
        offset_ + static_cast<int64_t>(position_),
        static_cast<unsigned char>(rest[0])));
  }
  position_ += size;
  return CodePoint(rest, size);
}

absl::StatusOr<int32_t> TokenReader::Next() {
  const int64_t offset = offset_ + static_cast<int64_t>(position_);
  TRIBUTARY_ASSIGN_OR_RETURN(const int32_t token, NextToken());
  if (token < 0) return -1;
  const auto found = ids_.find(token);
  if (found != ids_.end()) return found->second;
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: offset %d: %s%04X is not in the training text",
                      file_->name(), offset, bytes_ ? "byte 0x" : "U+", token));
}

std::string TokenBytes(const v1::TextTokens& text, int32_t id) {
  const int32_t token = text.vocabulary(id);
  std::string bytes;
  if (token < 0x80 || text.tokens() == v1::TextSource::BYTES) {
    bytes.push_back(static_cast<char>(token));
    return bytes;
  }
  const int more = token < 0x800 ? 1 : token < 0x10000 ? 2 : 3;
  constexpr int kLead[] = {0, 0xC0, 0xE0, 0xF0};
  bytes.push_back(static_cast<char>(kLead[more] | token >> (6 * more)));
  for (int k = more - 1; k >= 0; --k) {
    bytes.push_back(static_cast<char>(0x80 | (token >> (6 * k) & 0x3F)));
  }
  return bytes;
}

}  // namespace tributary
