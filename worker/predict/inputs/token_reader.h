// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tributary/v1/preprocessing.pb.h"
#include "worker/data/readers/input_file.h"

namespace tributary {

// The ids of a text's tokens, one after the other.
class TokenReader {
 public:
  TokenReader(std::unique_ptr<InputFile> file, const v1::TextTokens& text);

  // The next token's id; -1 at the end. InvalidArgument, with the offset, for
  // bytes that are not UTF-8 and for tokens that the training text lacks.
  absl::StatusOr<int32_t> Next();

  const std::string& name() const { return file_->name(); }

 private:
  absl::Status Refill();
  absl::StatusOr<int32_t> NextToken();  // -1 at the end

  const std::unique_ptr<InputFile> file_;
  const bool bytes_;
  absl::flat_hash_map<int32_t, int32_t> ids_;
  std::string piece_;
  size_t position_ = 0;  // in piece_
  int64_t offset_ = 0;   // of piece_ in the file
  bool end_ = false;
};

// A token as text: its character in UTF-8, or its byte.
std::string TokenBytes(const v1::TextTokens& text, int32_t id);

}  // namespace tributary
