// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/stream/stored_text.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "common/status/status_macros.h"
#include "worker/train/data/stream/scratch_file.h"

namespace tributary {
namespace {

constexpr int64_t kTokenBytes = sizeof(int32_t);

struct StoredTokens {
  std::shared_ptr<const RandomAccessFile> file;
  int64_t count = 0;
};

// The code points or bytes of a text, one int32 each.
absl::StatusOr<StoredTokens> StoreTokens(const InputFiles& files, bool bytes,
                                         absl::flat_hash_set<int32_t>* seen) {
  TRIBUTARY_ASSIGN_OR_RETURN(ScratchFile scratch,
                             ScratchFile::Create(files.name()));
  TRIBUTARY_RETURN_IF_ERROR(ForEachToken(files, bytes, [&](int32_t token) {
    seen->insert(token);
    return scratch.Append(&token, sizeof(token));
  }));
  StoredTokens tokens{.count = scratch.size() / kTokenBytes};
  TRIBUTARY_ASSIGN_OR_RETURN(tokens.file, scratch.Finish());
  return tokens;
}

// The ids of the tokens of `rows`, one int32 each.
absl::StatusOr<std::shared_ptr<const RandomAccessFile>> StoreIds(
    const StoredTokens& tokens, const TextRows& rows, const TokenIds& ids,
    const std::string& name) {
  constexpr int64_t kPieceTokens = 64 << 10;
  TRIBUTARY_ASSIGN_OR_RETURN(ScratchFile scratch, ScratchFile::Create(name));
  std::vector<int32_t> piece;
  for (int64_t i = 0; i < rows.tokens; i += kPieceTokens) {
    piece.resize(std::min(kPieceTokens, rows.tokens - i));
    const int64_t first = rows.first_token + i;
    TRIBUTARY_RETURN_IF_ERROR(tokens.file->Read(
        first * kTokenBytes, piece.size() * sizeof(int32_t), piece.data()));
    for (size_t k = 0; k < piece.size(); ++k) {
      TRIBUTARY_ASSIGN_OR_RETURN(
          piece[k], ids.IdOf(piece[k], first + static_cast<int64_t>(k)));
    }
    TRIBUTARY_RETURN_IF_ERROR(
        scratch.Append(piece.data(), piece.size() * sizeof(int32_t)));
  }
  return scratch.Finish();
}

}  // namespace

absl::StatusOr<StoredRows::Columns> StoreText(const InputFiles& files,
                                              const TextOptions& options,
                                              Vocabulary* vocabulary) {
  absl::flat_hash_set<int32_t> seen;
  TRIBUTARY_ASSIGN_OR_RETURN(const StoredTokens tokens,
                             StoreTokens(files, options.bytes, &seen));
  if (vocabulary->tokens.empty()) {
    vocabulary->tokens.assign(seen.begin(), seen.end());
    std::sort(vocabulary->tokens.begin(), vocabulary->tokens.end());
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const TextRows rows,
                             RowsOfText(options, tokens.count, files.name()));
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::shared_ptr<const RandomAccessFile> ids,
      StoreIds(tokens, rows, TokenIds(files.name(), options.bytes, *vocabulary),
               files.name()));
  StoredRows::Columns columns;
  columns.layout.name = files.name();
  columns.layout.feature_shape = {options.length};
  columns.layout.token_stride = options.stride;
  columns.layout.num_tokens = static_cast<int64_t>(vocabulary->tokens.size());
  columns.layout.targets.kind = TargetKind::kClass;
  columns.layout.targets.width = options.length;
  columns.tokens = StoredRecords(options.length + 1, options.stride);
  columns.tokens->Append(ids, NpyType::kInt32, 0, rows.rows);
  columns.stream = StoredRecords(1);
  columns.stream->Append(ids, NpyType::kInt32, 0, rows.tokens);
  return columns;
}

}  // namespace tributary
