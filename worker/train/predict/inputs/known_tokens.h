// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tributary/v1/preprocessing.pb.h"
#include "worker/train/data/readers/text_reader.h"
#include "worker/train/data/readers/token_reader.h"

namespace tributary {

// The ids of a file's tokens in a model that was trained on text.
class KnownTokens {
 public:
  KnownTokens(std::unique_ptr<InputFile> file, const v1::TextTokens& text);

  // The next token's id; -1 at the end. Errors as of TokenReader and TokenIds.
  absl::StatusOr<int32_t> Next();

 private:
  TokenIds ids_;
  TokenReader reader_;
  int64_t number_ = 0;  // of the next token
};

// A token as text: its character in UTF-8, or its byte.
std::string TokenBytes(const v1::TextTokens& text, int32_t id);

}  // namespace tributary
