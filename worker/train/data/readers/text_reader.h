// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/train/data/raw_data.h"
#include "worker/train/data/readers/input_files.h"

namespace tributary {

// The tokens of a text. The id of a token is its index here.
struct Vocabulary {
  std::vector<int32_t> tokens;  // code points or bytes, sorted
};

struct TextOptions {
  bool bytes = false;  // tokens are bytes, not UTF-8 characters
  int64_t length = 0;  // tokens per sample, at least 1
  int64_t stride = 0;  // between the first tokens of consecutive samples
  // The part of the text to read, as fractions of its n tokens: tokens
  // [floor(begin * n), floor(end * n)).
  double begin = 0;
  double end = 1;
  RowRange range;  // of samples within that part
};

// Calls take(token) for each token of the files (TokenReader), in their order.
// Errors are those of TokenReader and of `take`.
absl::Status ForEachToken(
    const InputFiles& files, bool bytes,
    const std::function<absl::Status(int32_t token)>& take);

// The ids of tokens. With an empty vocabulary, no token has an id.
class TokenIds {
 public:
  TokenIds(const std::string& name, bool bytes, const Vocabulary& vocabulary);

  // InvalidArgument, naming the token by its number in the text, when the
  // vocabulary does not have it.
  absl::StatusOr<int32_t> IdOf(int32_t token, int64_t number) const;

 private:
  const std::string name_;
  const bool bytes_;
  absl::flat_hash_map<int32_t, int32_t> ids_;
};

// The tokens and samples of a text that are used.
struct TextRows {
  int64_t first_token = 0;  // of the first sample
  int64_t tokens = 0;       // of all samples, and the last target
  int64_t rows = 0;
};

// InvalidArgument, naming the text, when its part is shorter than a sample, or
// the range is not within the samples.
absl::StatusOr<TextRows> RowsOfText(const TextOptions& options, int64_t tokens,
                                    const std::string& name);

// Reads files as one text, in samples of `length` tokens, whose targets are the
// tokens shifted by one. With an empty vocabulary (training text), fills it
// with all tokens of the files, including those outside the part. With a given
// vocabulary, other tokens are an error. InvalidArgument, with the offset, for
// bytes that are not UTF-8 and for unknown tokens; also when the part is
// shorter than one sample or the text has more than 2^28 tokens.
absl::StatusOr<RawData> ReadText(const InputFiles& files,
                                 const TextOptions& options,
                                 Vocabulary* vocabulary);

}  // namespace tributary
