// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace tributary {

// How many names a message lists before it only counts the rest. Keeps a
// message about a thousand members readable and short enough for a status.
inline constexpr size_t kMaxListedNames = 10;

// "server 1, worker 0 and 990 more".
inline std::string NameList(const std::vector<std::string>& names,
                            absl::string_view separator = ", ") {
  const size_t shown = std::min(names.size(), kMaxListedNames);
  std::string text = absl::StrJoin(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown),
      separator);
  if (names.size() > shown) {
    absl::StrAppend(&text, " and ", names.size() - shown, " more");
  }
  return text;
}

// "rank 2"; "ranks 2, 3".
inline std::string RankList(const std::vector<uint32_t>& ranks) {
  std::vector<std::string> names;
  for (uint32_t rank : ranks) names.push_back(absl::StrCat(rank));
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", NameList(names));
}

}  // namespace tributary
