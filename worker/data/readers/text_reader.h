#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/raw_data.h"
#include "worker/data/readers/input_file.h"

namespace tributary {

// The tokens of a text. The id of a token is its index here.
struct Vocabulary {
  std::vector<int32_t> tokens;  // code points or bytes, sorted
};

struct TextOptions {
  bool bytes = false;  // else UTF-8 characters
  int64_t length = 0;  // tokens per sample, at least 1
  int64_t stride = 0;  // between the first tokens of consecutive samples
  // The part of the text to read, as fractions of its n tokens: tokens
  // [floor(begin * n), floor(end * n)).
  double begin = 0;
  double end = 1;
  RowRange range;  // of samples within that part
};

// Reads a text as samples of `length` tokens, whose targets are the tokens
// shifted by one. With an empty vocabulary (training text), fills it with all
// tokens of the file, including those outside the part. With a given
// vocabulary, other tokens are an error. InvalidArgument, with the offset, for
// bytes that are not UTF-8 and for unknown tokens; also when the part is
// shorter than one sample or the file has more than 2^28 tokens.
absl::StatusOr<RawData> ReadText(InputFile* file, const TextOptions& options,
                                 Vocabulary* vocabulary);

}  // namespace tributary
