// SPDX-License-Identifier: Apache-2.0
#include "worker/train/predict/inputs/known_tokens.h"

#include <utility>

#include "common/status/status_macros.h"

namespace tributary {
namespace {

bool AreBytes(const v1::TextTokens& text) {
  return text.tokens() == v1::TextSource::BYTES;
}

}  // namespace

KnownTokens::KnownTokens(std::unique_ptr<InputFile> file,
                         const v1::TextTokens& text)
    : ids_(file->name(), AreBytes(text),
           {{text.vocabulary().begin(), text.vocabulary().end()}}),
      reader_(std::move(file), AreBytes(text)) {}

absl::StatusOr<int32_t> KnownTokens::Next() {
  TRIBUTARY_ASSIGN_OR_RETURN(const int32_t token, reader_.Next());
  return token < 0 ? token : ids_.IdOf(token, number_++);
}

std::string TokenBytes(const v1::TextTokens& text, int32_t id) {
  const int32_t token = text.vocabulary(id);
  std::string bytes;
  if (token < 0x80 || AreBytes(text)) {
    bytes.push_back(static_cast<char>(token));
    return bytes;
  }
  const int more = token < 0x800 ? 1 : token < 0x10000 ? 2 : 3;
  constexpr int kLead[] = {0, 0xC0, 0xE0, 0xF0};
  bytes.push_back(static_cast<char>(kLead[more] | token >> (6 * more)));
  for (int k = more - 1; k >= 0; --k) {
    bytes.push_back(static_cast<char>(0x80 | (token >> (6 * k) & 0x3F)));
  }
  return bytes;
}

}  // namespace tributary
