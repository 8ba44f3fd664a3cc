// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/csv/similar_words.h"

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/status/quoted.h"
#include "worker/train/data/readers/csv/csv_columns.h"

namespace tributary {
namespace {

// Returns ": "red" and " red" are two categories", or "" without such a pair.
std::string PairText(const std::vector<std::string>& words, const char* what) {
  absl::flat_hash_map<std::string, const std::string*> seen;
  std::string text;
  int64_t more = 0;
  for (const std::string& word : words) {
    const auto [first, is_new] = seen.try_emplace(
        absl::AsciiStrToLower(absl::StripAsciiWhitespace(word)), &word);
    if (is_new) continue;
    if (!text.empty()) {
      ++more;
      continue;
    }
    text = absl::StrCat(": ", Quoted(*first->second), " and ", Quoted(word),
                        " are two ", what);
  }
  if (more > 0) absl::StrAppend(&text, ", and so are ", more, " more");
  return text;
}

}  // namespace

std::vector<std::string> SimilarWordNotes(const std::string& table,
                                          const CsvWords& words,
                                          bool named_classes) {
  std::vector<std::string> notes;
  const auto add = [&](int column, const std::vector<std::string>& its,
                       const char* what) {
    const std::string pair = PairText(its, what);
    if (pair.empty()) return;
    notes.push_back(absl::StrCat(
        table, ": column ", CsvColumnText(words.header, column), pair,
        "; if they mean the same, write them alike in the file, with the same "
        "case and no blanks around them"));
  };
  if (!named_classes) add(words.roles.label, words.classes, "classes");
  for (size_t i = 0; i < words.categories.size(); ++i) {
    add(words.roles.categorical[i], words.categories[i], "categories");
  }
  return notes;
}

}  // namespace tributary
