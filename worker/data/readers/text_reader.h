#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/raw_data.h"
#include "worker/data/readers/input_file.h"

namespace tributary {

// Which tokens a text is made of; the id of a token is its place here.
struct Vocabulary {
  std::vector<int32_t> tokens;  // code points or bytes, sorted
};

struct TextOptions {
  bool bytes = false;  // else characters of UTF-8
  int64_t length = 0;  // tokens of a sample, from 1
  int64_t stride = 0;  // from one sample's first token to the next one's
  // The part of the text, as fractions of its tokens: from token
  // floor(begin * all) to before floor(end * all).
  double begin = 0;
  double end = 1;
  RowRange range;  // of the part's samples
};

// Text in samples of `length` tokens whose targets are the tokens one further.
// The training text fills an empty vocabulary with all tokens of the file, also
// those outside the part; with a vocabulary, other tokens are an error.
// InvalidArgument, with the offset, for bytes that are no UTF-8 and for unknown
// tokens; also when the part has not one sample, or the file more than 2^28
// tokens.
absl::StatusOr<RawData> ReadText(InputFile* file, const TextOptions& options,
                                 Vocabulary* vocabulary);

}  // namespace tributary
