// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "worker/train/data/raw_data.h"

namespace tributary {

struct SyntheticOptions {
  enum class Kind { kCtr, kLinear, kMlpTeacher, kMarkovText };

  Kind kind = Kind::kLinear;
  uint64_t seed = 11;
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t length = 0;  // markov_text: tokens per sample; 0: see below
};

// Makes the rows first_row, first_row + 1, ... of a generator
// (synthetic_models.h):
//   ctr          13 numbers, then the 8 ids as numbers; label: click, 0 or 1
//   linear       20 numbers; a real target
//   mlp_teacher  16 numbers; a real target
//   markov_text  row t: tokens t - 2 and t - 1, each one-hot (16 + 16
//                features); class: token t. Tokens before the stream are 0.
//                With a length T, row t is the token sequence t T ...
//                t T + T - 1, and its targets are the tokens shifted by one.
// InvalidArgument when the kind of target does not fit, or when more than 50
// million rows are needed; markov_text needs all rows from the stream's start.
absl::StatusOr<RawData> MakeSynthetic(const SyntheticOptions& options,
                                      TargetKind kind);

}  // namespace tributary
