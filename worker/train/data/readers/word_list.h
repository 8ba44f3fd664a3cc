// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace tributary {

// The distinct words of a column, numbered in the order of their first use.
class WordList {
 public:
  struct Word {
    std::string text;
    int64_t first_line = 0;  // the line of its first use, and its file
    int first_file = 0;
    int64_t count = 0;  // the number of its uses
  };

  // `file` is the number of the file in which `line` is.
  int32_t Add(absl::string_view text, int file, int64_t line);
  const std::vector<Word>& words() const { return words_; }
  const Word* Find(absl::string_view text) const;  // null: it is not there

  // The texts, sorted by bytes.
  std::vector<std::string> Sorted() const;
  // Returns the index of each word in `texts`, or -1 if it is not there. The
  // texts are all different.
  std::vector<int32_t> PlacesIn(const std::vector<std::string>& texts) const;

 private:
  std::vector<Word> words_;
  absl::flat_hash_map<std::string, int32_t> numbers_;
};

}  // namespace tributary
