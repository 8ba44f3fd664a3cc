// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/text_reader.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status/status_macros.h"
#include "worker/train/data/readers/token_reader.h"

namespace tributary {
namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 28;

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

absl::Status ForEachToken(
    const InputFiles& files, bool bytes,
    const std::function<absl::Status(int32_t token)>& take) {
  for (size_t i = 0; i < files.size(); ++i) {
    TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file, files.Open(i));
    TokenReader reader(std::move(file), bytes);
    while (true) {
      TRIBUTARY_ASSIGN_OR_RETURN(const absl::Span<const int32_t> tokens,
                                 reader.NextPiece());
      if (tokens.empty()) break;
      for (const int32_t token : tokens) {
        TRIBUTARY_RETURN_IF_ERROR(take(token));
      }
    }
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
