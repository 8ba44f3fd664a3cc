// SPDX-License-Identifier: Apache-2.0
#include "common/job/files/file_pairs.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tributary {
namespace {

using Names = std::vector<std::string>;

// The text, with its numbers written without leading zeros.
std::string ByValue(absl::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool follows = !plain.empty() && absl::ascii_isdigit(plain.back());
    const bool goes_on =
        i + 1 < text.size() && absl::ascii_isdigit(text[i + 1]);
    if (text[i] != '0' || follows || !goes_on) plain.push_back(text[i]);
  }
  return plain;
}

// Returns the length of the beginning (`reverse`: of the end) that all names
// share, without the digits of a number that is longer in one of the names.
size_t CommonLength(const Names& names, bool reverse) {
  const auto at = [reverse](const std::string& name, size_t i) {
    return reverse ? name[name.size() - 1 - i] : name[i];
  };
  size_t length = names[0].size();
  for (const std::string& name : names) {
    length = std::min(length, name.size());
    size_t same = 0;
    while (same < length && at(name, same) == at(names[0], same)) ++same;
    length = same;
  }
  const bool goes_on =
      std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return length < name.size() && absl::ascii_isdigit(at(name, length));
      });
  while (goes_on && length > 0 &&
         absl::ascii_isdigit(at(names[0], length - 1))) {
    --length;
  }
  return length;
}

// The parts in which the names differ.
Names DifferingParts(const Names& names) {
  const size_t begin = CommonLength(names, /*reverse=*/false);
  const size_t end = CommonLength(names, /*reverse=*/true);
  Names parts;
  for (const std::string& name : names) {
    const size_t size =
        name.size() > begin + end ? name.size() - begin - end : 0;
    parts.push_back(ByValue(absl::string_view(name).substr(begin, size)));
  }
  return parts;
}

// Returns [place][name]: the numbers in the names, or the words between them,
// for each place at which all names have one and not all have the same.
std::vector<Names> Varying(const Names& names, bool numbers) {
  const auto is_part = [numbers](char c) {
    return numbers ? absl::ascii_isdigit(c) : absl::ascii_isalpha(c);
  };
  std::vector<Names> all;  // [name][place]
  size_t places = std::string::npos;
  for (const std::string& name : names) {
    Names& parts = all.emplace_back();
    const std::string plain = ByValue(name);
    for (size_t i = 0; i < plain.size(); ++i) {
      if (!is_part(plain[i])) continue;
      if (i == 0 || !is_part(plain[i - 1])) parts.emplace_back();
      parts.back().push_back(plain[i]);
    }
    places = std::min(places, parts.size());
  }
  std::vector<Names> varying;
  for (size_t place = 0; place < places; ++place) {
    Names column;
    for (const Names& parts : all) column.push_back(parts[place]);
    if (std::set<std::string>(column.begin(), column.end()).size() > 1) {
      varying.push_back(std::move(column));
    }
  }
  return varying;
}

// Whether the names are in the order of their numbers, the first one first.
bool Ascend(const std::vector<Names>& numbers, size_t rows) {
  const auto less = [&numbers](size_t a, size_t b) {
    for (const Names& column : numbers) {
      const std::string& x = column[a];
      const std::string& y = column[b];
      if (x != y) return x.size() != y.size() ? x.size() < y.size() : x < y;
    }
    return false;
  };
  for (size_t i = 1; i < rows; ++i) {
    if (!less(i - 1, i)) return false;
  }
  return true;
}

Names Joined(const std::vector<Names>& columns, size_t rows) {
  Names joined(rows);
  for (const Names& column : columns) {
    for (size_t i = 0; i < rows; ++i)
      absl::StrAppend(&joined[i], column[i], ",");
  }
  return joined;
}

// Whether both have the same names, each of them once.
bool AreComparable(const Names& a, const Names& b) {
  const std::set<std::string> names(a.begin(), a.end());
  return names.size() == a.size() && a.size() == b.size() &&
         names == std::set<std::string>(b.begin(), b.end());
}

std::optional<size_t> FirstDifference(const Names& a, const Names& b) {
  const auto differs = std::mismatch(a.begin(), a.end(), b.begin());
  if (differs.first == a.end()) return std::nullopt;
  return static_cast<size_t>(differs.first - a.begin());
}

}  // namespace

std::optional<size_t> FirstMispaired(const Names& files, const Names& others) {
  if (files.empty() || files.size() != others.size()) return std::nullopt;
  const Names parts = DifferingParts(files),
              their_parts = DifferingParts(others);
  if (AreComparable(parts, their_parts)) {
    return FirstDifference(parts, their_parts);
  }
  const Names words = Joined(Varying(files, /*numbers=*/false), files.size());
  if (AreComparable(words, words) &&
      words == Joined(Varying(others, /*numbers=*/false), files.size())) {
    return std::nullopt;
  }
  const std::vector<Names> numbers = Varying(files, /*numbers=*/true);
  const std::vector<Names> theirs = Varying(others, /*numbers=*/true);
  const Names all = Joined(numbers, files.size());
  const Names their_all = Joined(theirs, files.size());
  if (AreComparable(all, their_all)) return FirstDifference(all, their_all);
  if (Ascend(numbers, files.size()) && Ascend(theirs, files.size())) {
    return std::nullopt;
  }
  std::optional<size_t> mispaired;
  for (const Names& column : numbers) {
    for (const Names& other : theirs) {
      if (!AreComparable(column, other)) continue;
      const std::optional<size_t> differs = FirstDifference(column, other);
      if (!differs) return std::nullopt;
      if (!mispaired) mispaired = differs;
    }
  }
  return mispaired;
}

}  // namespace tributary
