#include "worker/data/readers/text_reader.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
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

// Reads the file as code points or as bytes.
absl::StatusOr<std::vector<int32_t>> ReadTokens(InputFile* file, bool bytes) {
  std::vector<int32_t> tokens;
  std::vector<uint8_t> piece(kPiece);
  Utf8Decoder decoder;
  while (true) {
    const int64_t offset = file->offset();
    TRIBUTARY_ASSIGN_OR_RETURN(const size_t size,
                               file->Read(piece.size(), piece.data()));
    for (size_t i = 0; i < size; ++i) {
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
      if (static_cast<int64_t>(tokens.size()) == kMaxTokens) {
        return file->Error(
            absl::StrCat("wanted at most ", kMaxTokens, " tokens"));
      }
      tokens.push_back(token);
    }
    if (size < piece.size()) break;
  }
  if (decoder.within_character()) {
    return file->Error("the file ends within a character");
  }
  return tokens;
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

absl::Status ReplaceByIds(const std::string& name, bool bytes,
                          const Vocabulary& vocabulary, int64_t first,
                          std::vector<int32_t>* tokens) {
  absl::flat_hash_map<int32_t, int32_t> ids;
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    ids[vocabulary.tokens[i]] = static_cast<int32_t>(i);
  }
  for (size_t i = 0; i < tokens->size(); ++i) {
    const auto found = ids.find((*tokens)[i]);
    if (found == ids.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": token ", first + static_cast<int64_t>(i),
                       " is ", TokenText((*tokens)[i], bytes),
                       ", which the training text does not have"));
    }
    (*tokens)[i] = found->second;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RawData> ReadText(InputFile* file, const TextOptions& options,
                                 Vocabulary* vocabulary) {
  TRIBUTARY_ASSIGN_OR_RETURN(std::vector<int32_t> tokens,
                             ReadTokens(file, options.bytes));
  if (vocabulary->tokens.empty()) *vocabulary = VocabularyOf(tokens);
  const double all = static_cast<double>(tokens.size());
  const auto first = static_cast<int64_t>(std::floor(options.begin * all));
  const auto end = static_cast<int64_t>(std::floor(options.end * all));
  tokens = {tokens.begin() + first, tokens.begin() + end};
  TRIBUTARY_RETURN_IF_ERROR(
      ReplaceByIds(file->name(), options.bytes, *vocabulary, first, &tokens));

  RawData data;
  data.name = file->name();
  const int64_t spare =
      static_cast<int64_t>(tokens.size()) - options.length - 1;
  if (spare < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(file->name(), ": wanted at least ", options.length + 1,
                     " tokens for a sample of ", options.length,
                     " and the next, got ", tokens.size()));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      const RowRange rows,
      ResolveRange(options.range, spare / options.stride + 1, file->name()));
  data.rows = rows.count;
  data.feature_shape = {options.length};
  data.token_stride = options.stride;
  data.num_tokens = static_cast<int64_t>(vocabulary->tokens.size());
  const int64_t begin = rows.first * options.stride;
  const int64_t size = (rows.count - 1) * options.stride + options.length + 1;
  data.tokens = {tokens.begin() + begin, tokens.begin() + begin + size};
  data.targets.kind = TargetKind::kClass;
  data.targets.width = options.length;
  return data;
}

}  // namespace tributary
