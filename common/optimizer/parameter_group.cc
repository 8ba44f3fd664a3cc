#include "common/optimizer/parameter_group.h"

#include <algorithm>

namespace tributary {

// Each part of the pattern between two stars is searched for behind the
// previous one; the first and the last part are tied to the name's ends.
bool MatchesPattern(std::string_view pattern, std::string_view name) {
  const size_t first = pattern.find('*');
  if (first == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, first))) return false;
  name.remove_prefix(first);
  pattern.remove_prefix(first + 1);
  for (size_t star = pattern.find('*'); star != std::string_view::npos;
       star = pattern.find('*')) {
    const std::string_view part = pattern.substr(0, star);
    const size_t at = name.find(part);
    if (at == std::string_view::npos) return false;
    name.remove_prefix(at + part.size());
    pattern.remove_prefix(star + 1);
  }
  return name.ends_with(pattern);
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
