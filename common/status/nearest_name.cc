#include "common/status/nearest_name.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tributary {
namespace {

// Longer than any name of the schema. Bounds the cost for any input.
constexpr size_t kMaxCompared = 64;

}  // namespace

int EditDistance(absl::string_view a, absl::string_view b) {
  // Keeps three rows of the table: row i needs row i - 1 and, for swaps, i - 2.
  std::vector<int> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::string NearestName(absl::string_view written,
                        const std::vector<std::string>& names) {
  if (written.size() > kMaxCompared) return "";
  const int limit = std::max<int>(1, static_cast<int>(written.size()) / 3);
  std::string nearest;
  int best = limit + 1;
  for (const std::string& name : names) {
    const int distance = EditDistance(written, name);
    if (distance < best) {
      best = distance;
      nearest = name;
    }
  }
  return nearest;
}

std::string NameHint(absl::string_view written,
                     const std::vector<std::string>& names,
                     absl::string_view owner) {
  const std::string nearest = NearestName(written, names);
  if (!nearest.empty()) {
    return absl::StrCat("; did you mean \"", nearest, "\"?");
  }
  if (names.empty()) return absl::StrCat("; ", owner, " takes no fields");
  return absl::StrCat("; ", owner, " knows ", absl::StrJoin(names, ", "));
}

}  // namespace tributary
