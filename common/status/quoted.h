// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status/utf8.h"

namespace tributary {

// Makes foreign text safe for a message: quoted, escaped, and truncated when
// long.
inline std::string Quoted(absl::string_view text) {
  constexpr size_t kMaxBytes = 60;
  const bool cut = text.size() > kMaxBytes;
  const absl::string_view shown = CutUtf8(text, kMaxBytes);
  return absl::StrCat(
      "\"",
      IsUtf8(shown) ? absl::Utf8SafeCEscape(shown) : absl::CHexEscape(shown),
      cut ? "..." : "", "\"");
}

}  // namespace tributary
