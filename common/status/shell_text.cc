// SPDX-License-Identifier: Apache-2.0
#include "common/status/shell_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace tributary {
namespace {

bool IsPlain(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         absl::string_view("_-./:=,@%+").find(c) != absl::string_view::npos;
}

std::string ShellWord(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), IsPlain)) {
    return word;
  }
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

}  // namespace

std::string ShellText(const std::vector<std::string>& words) {
  return absl::StrJoin(words, " ", [](std::string* out, const auto& word) {
    out->append(ShellWord(word));
  });
}

}  // namespace tributary
