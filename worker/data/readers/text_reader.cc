// SPDX-License-Identifier: Apache-2.0
#include "worker/data/readers/text_reader.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 28;
constexpr size_t kPiece = 1 << 20;

// Decodes UTF-8 (RFC 3629) byte by byte. Rejects overlong forms, surrogates and
// code points above U+10FFFF.
class Utf8Decoder {
 public:
  enum class Result { kMore, kCharacter, kInvalid };

  Result Take(uint8_t byte, int32_t* character) {
    if (missing_ > 0) return Continue(byte, character);
    if (byte < 0x80) {
      *character = byte;
      return Result::kCharacter;
    }
    if (byte >= 0xC2 && byte <= 0xDF) return Begin(byte & 0x1F, 1, 0x80);
    if (byte >= 0xE0 && byte <= 0xEF) return Begin(byte & 0x0F, 2, 0x800);
    if (byte >= 0xF0 && byte <= 0xF4) return Begin(byte & 0x07, 3, 0x10000);
    return Result::kInvalid;
  }
  bool within_character() const { return missing_ > 0; }

 private:
  Result Begin(int32_t bits, int missing, int32_t smallest) {
    value_ = bits;
    missing_ = missing;
    smallest_ = smallest;
    return Result::kMore;
  }
  Result Continue(uint8_t byte, int32_t* character) {
    if ((byte & 0xC0) != 0x80) return Result::kInvalid;
    value_ = value_ << 6 | (byte & 0x3F);
    if (--missing_ > 0) return Result::kMore;
    const bool surrogate = value_ >= 0xD800 && value_ <= 0xDFFF;
    if (value_ < smallest_ || value_ > 0x10FFFF || surrogate) {
      return Result::kInvalid;
    }
    *character = value_;
    return Result::kCharacter;
  }

  int32_t value_ = 0;
  int32_t smallest_ = 0;
  int missing_ = 0;
};

// Takes the tokens of one file.
absl::Status TakeTokens(
    InputFile* file, bool bytes,
    const std::function<absl::Status(int32_t token)>& take) {
  std::vector<uint8_t> piece(kPiece);
  Utf8Decoder decoder;
  while (true) {
    const int64_t offset = file->offset();
    TRIBUTARY_ASSIGN_OR_RETURN(const size_t size,
                               file->Read(piece.size(), piece.data()));
    size_t begin = 0;
    if (!bytes && offset == 0) {
      TRIBUTARY_ASSIGN_OR_RETURN(
          begin, SkipByteOrderMark(
                     file->name(),
                     {reinterpret_cast<const char*>(piece.data()), size}));
    }
    for (size_t i = begin; i < size; ++i) {
      int32_t token = piece[i];
      if (!bytes) {
        switch (decoder.Take(piece[i], &token)) {
          case Utf8Decoder::Result::kMore:
            continue;
          case Utf8Decoder::Result::kCharacter:
            break;
          case Utf8Decoder::Result::kInvalid:
            return absl::InvalidArgumentError(absl::StrFormat(
                "%s: offset %d: byte %02x is not UTF-8 here; for such a file "
                "write tokens: bytes",
                file->name(), offset + static_cast<int64_t>(i), piece[i]));
        }
      }
      TRIBUTARY_RETURN_IF_ERROR(take(token));
    }
    if (size < piece.size()) break;
  }
  if (decoder.within_character()) {
    return file->Error("the file ends within a character");
  }
  return absl::OkStatus();
}

// "'a'", "U+00E9" or "byte 0x0A", for messages.
std::string TokenText(int32_t token, bool bytes) {
  if (bytes) return absl::StrFormat("byte 0x%02X", token);
  if (token > 0x20 && token < 0x7F) {
    return absl::StrFormat("'%c'", static_cast<char>(token));
  }
  return absl::StrFormat("U+%04X", token);
}

Vocabulary VocabularyOf(const std::vector<int32_t>& tokens) {
  std::vector<int32_t> sorted = tokens;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return {std::move(sorted)};
}

}  // namespace

absl::StatusOr<size_t> SkipByteOrderMark(const std::string& file,
                                         absl::string_view begin) {
  if (absl::StartsWith(begin, "\xEF\xBB\xBF")) return 3;
  const bool little = absl::StartsWith(begin, "\xFF\xFE");
  if (!little && !absl::StartsWith(begin, "\xFE\xFF")) return 0;
  return absl::InvalidArgumentError(absl::StrCat(
      file,
      ": offset 0: begins with the byte order mark of UTF-16, wanted UTF-8; "
      "convert it with iconv -f UTF-16 -t UTF-8"));
}

absl::Status ForEachToken(
    const InputFiles& files, bool bytes,
    const std::function<absl::Status(int32_t token)>& take) {
  for (size_t i = 0; i < files.size(); ++i) {
    TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file,
                               files.Open(i));
    TRIBUTARY_RETURN_IF_ERROR(TakeTokens(file.get(), bytes, take));
  }
  return absl::OkStatus();
}

TokenIds::TokenIds(const std::string& name, bool bytes,
                   const Vocabulary& vocabulary)
    : name_(name), bytes_(bytes) {
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    ids_[vocabulary.tokens[i]] = static_cast<int32_t>(i);
  }
}

absl::StatusOr<int32_t> TokenIds::IdOf(int32_t token, int64_t number) const {
  const auto found = ids_.find(token);
  if (found != ids_.end()) return found->second;
  return absl::InvalidArgumentError(
      absl::StrCat(name_, ": token ", number, " is ", TokenText(token, bytes_),
                   ", which the training text does not have"));
}

absl::StatusOr<TextRows> RowsOfText(const TextOptions& options, int64_t tokens,
                                    const std::string& name) {
  const auto all = static_cast<double>(tokens);
  const auto first = static_cast<int64_t>(std::floor(options.begin * all));
  const auto end = static_cast<int64_t>(std::floor(options.end * all));
  const int64_t spare = end - first - options.length - 1;
  if (spare < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": wanted at least ", options.length + 1,
                     " tokens for a sample of ", options.length,
                     " and the next, got ", end - first));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      const RowRange rows,
      ResolveRange(options.range, spare / options.stride + 1, name));
  return TextRows{
      .first_token = first + rows.first * options.stride,
      .tokens = (rows.count - 1) * options.stride + options.length + 1,
      .rows = rows.count};
}

absl::StatusOr<RawData> ReadText(const InputFiles& files,
                                 const TextOptions& options,
                                 Vocabulary* vocabulary) {
  std::vector<int32_t> tokens;
  TRIBUTARY_RETURN_IF_ERROR(
      ForEachToken(files, options.bytes, [&](int32_t token) -> absl::Status {
        if (static_cast<int64_t>(tokens.size()) == kMaxTokens) {
          return absl::InvalidArgumentError(
              absl::StrCat(files.name(), ": wanted at most ", kMaxTokens,
                           " tokens in memory (data.stream leaves them on "
                           "disk)"));
        }
        tokens.push_back(token);
        return absl::OkStatus();
      }));
  if (vocabulary->tokens.empty()) *vocabulary = VocabularyOf(tokens);
  TRIBUTARY_ASSIGN_OR_RETURN(
      const TextRows rows,
      RowsOfText(options, static_cast<int64_t>(tokens.size()), files.name()));
  const TokenIds ids(files.name(), options.bytes, *vocabulary);
  RawData data;
  data.name = files.name();
  data.rows = rows.rows;
  data.feature_shape = {options.length};
  data.token_stride = options.stride;
  data.num_tokens = static_cast<int64_t>(vocabulary->tokens.size());
  data.tokens.reserve(rows.tokens);
  for (int64_t i = rows.first_token; i < rows.first_token + rows.tokens; ++i) {
    TRIBUTARY_ASSIGN_OR_RETURN(const int32_t id, ids.IdOf(tokens[i], i));
    data.tokens.push_back(id);
  }
  data.targets.kind = TargetKind::kClass;
  data.targets.width = options.length;
  return data;
}

}  // namespace tributary
