#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace tributary {

// The different words of a column, numbered as they first come.
class WordList {
 public:
  struct Word {
    std::string text;
    int64_t first_line = 0;  // where it first came
    int64_t count = 0;       // how often it came
  };

  int32_t Add(absl::string_view text, int64_t line);
  const std::vector<Word>& words() const { return words_; }

  // The texts in the order of their bytes.
  std::vector<std::string> Sorted() const;
  // For each word its place in the sorted `texts`, or -1.
  std::vector<int32_t> PlacesIn(const std::vector<std::string>& texts) const;

 private:
  std::vector<Word> words_;
  absl::flat_hash_map<std::string, int32_t> numbers_;
};

}  // namespace tributary
