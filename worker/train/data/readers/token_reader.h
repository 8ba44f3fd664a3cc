// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/train/data/readers/input_file.h"

namespace tributary {

// The tokens of a text file, one after the other: its bytes, or the code points
// of its characters, which are UTF-8 (RFC 3629). A byte order mark at the
// beginning is not a token then.
class TokenReader {
 public:
  TokenReader(std::unique_ptr<InputFile> file, bool bytes)
      : file_(std::move(file)), bytes_(bytes) {}

  // The next token; -1 at the end. InvalidArgument, with the offset, for bytes
  // that are not UTF-8.
  absl::StatusOr<int32_t> Next();
  // Returns some of the next tokens, or none at the end. They are valid until
  // the next call.
  absl::StatusOr<absl::Span<const int32_t>> NextPiece();

 private:
  absl::Status Refill();
  // The error about bytes at the current place that are not a character.
  absl::Status WrongByte() const;

  const std::unique_ptr<InputFile> file_;
  const bool bytes_;
  std::string piece_;
  size_t position_ = 0;  // in piece_
  int64_t offset_ = 0;   // of piece_ in the file
  bool begun_ = false;
  bool end_ = false;
  absl::Status error_;  // returned once tokens_ are taken
  std::vector<int32_t> tokens_;
  size_t next_ = 0;  // in tokens_
};

}  // namespace tributary
