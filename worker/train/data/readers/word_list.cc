// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/word_list.h"

#include <algorithm>

namespace tributary {

int32_t WordList::Add(absl::string_view text, int file, int64_t line) {
  auto found = numbers_.find(text);
  if (found == numbers_.end()) {
    const int32_t number = static_cast<int32_t>(words_.size());
    found = numbers_.emplace(text, number).first;
    words_.push_back({std::string(text), line, file, 0});
  }
  ++words_[found->second].count;
  return found->second;
}

const WordList::Word* WordList::Find(absl::string_view text) const {
  const auto found = numbers_.find(text);
  return found == numbers_.end() ? nullptr : &words_[found->second];
}

std::vector<std::string> WordList::Sorted() const {
  std::vector<std::string> texts;
  for (const Word& word : words_) texts.push_back(word.text);
  std::sort(texts.begin(), texts.end());
  return texts;
}

std::vector<int32_t> WordList::PlacesIn(
    const std::vector<std::string>& texts) const {
  std::vector<int32_t> places(words_.size(), -1);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto found = numbers_.find(texts[i]);
    if (found != numbers_.end())
      places[found->second] = static_cast<int32_t>(i);
  }
  return places;
}

}  // namespace tributary
