// SPDX-License-Identifier: Apache-2.0
#include "common/optimizer/parameter_group.h"

#include <algorithm>

namespace tributary {

// Each part of the pattern between two stars is searched for after the previous
// one; the first and the last part are tied to the name's ends.
std::optional<std::vector<std::string_view>> StarsOf(std::string_view pattern,
                                                     std::string_view name) {
  std::vector<std::string_view> stars;
  const size_t first = pattern.find('*');
  if (first == std::string_view::npos) {
    if (pattern != name) return std::nullopt;
    return stars;
  }
  if (!name.starts_with(pattern.substr(0, first))) return std::nullopt;
  name.remove_prefix(first);
  pattern.remove_prefix(first + 1);
  for (size_t star = pattern.find('*'); star != std::string_view::npos;
       star = pattern.find('*')) {
    const std::string_view part = pattern.substr(0, star);
    const size_t at = name.find(part);
    if (at == std::string_view::npos) return std::nullopt;
    stars.push_back(name.substr(0, at));
    name.remove_prefix(at + part.size());
    pattern.remove_prefix(star + 1);
  }
  if (!name.ends_with(pattern)) return std::nullopt;
  stars.push_back(name.substr(0, name.size() - pattern.size()));
  return stars;
}

bool MatchesPattern(std::string_view pattern, std::string_view name) {
  return StarsOf(pattern, name).has_value();
}

bool ParameterGroup::Names(const ParameterSpec& parameter) const {
  const std::string& name =
      parameter.whole_name.empty() ? parameter.name : parameter.whole_name;
  return std::any_of(parameters.begin(), parameters.end(),
                     [&name](const std::string& pattern) {
                       return MatchesPattern(pattern, name);
                     });
}

}  // namespace tributary
