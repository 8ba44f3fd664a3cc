// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/faults/proxy_rule.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tributary::testing {
namespace {

bool Names(const std::string& pattern, const std::string& name) {
  if (!absl::EndsWith(pattern, "*")) return pattern == name;
  return absl::StartsWith(name, pattern.substr(0, pattern.size() - 1));
}

template <typename Value>
bool Look(const std::map<std::string, Value>& values, const std::string& name,
          Value* value) {
  const auto found = values.find(name);
  if (found == values.end()) return false;
  *value = found->second;
  return true;
}

}  // namespace

absl::StatusOr<ProxyRule> ProxyRule::Parse(const std::string& text) {
  static const std::map<std::string, Kind> kinds = {
      {"delay", Kind::kDelay},    {"stall", Kind::kStall},
      {"drop", Kind::kDrop},      {"reset", Kind::kReset},
      {"flip", Kind::kFlip},      {"replay", Kind::kReplay},
      {"silence", Kind::kSilence}};
  static const std::map<std::string, Direction> directions = {
      {"there", Direction::kThere},
      {"back", Direction::kBack},
      {"both", Direction::kBoth}};
  const absl::Status wrong = absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is no FROM>TO DIRECTION KIND [NAME=N]..."));
  const std::vector<std::string> words =
      absl::StrSplit(text, ' ', absl::SkipEmpty());
  if (words.size() < 3) return wrong;
  const std::pair<std::string, std::string> ends =
      absl::StrSplit(words[0], absl::MaxSplits('>', 1));
  ProxyRule rule;
  rule.from = ends.first;
  rule.to = ends.second;
  if (rule.from.empty() || rule.to.empty() ||
      !Look(directions, words[1], &rule.direction) ||
      !Look(kinds, words[2], &rule.kind)) {
    return wrong;
  }
  // Delays apply to all bytes; other faults happen once unless the rule says
  // more.
  if (rule.kind == Kind::kDelay) rule.times = INT64_MAX;
  const std::map<std::string, int64_t*> numbers = {{"after", &rule.after},
                                                   {"every", &rule.every},
                                                   {"times", &rule.times},
                                                   {"ms", &rule.ms}};
  for (size_t i = 3; i < words.size(); ++i) {
    const std::pair<std::string, std::string> setting =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    int64_t* number = nullptr;
    if (!Look(numbers, setting.first, &number) ||
        !absl::SimpleAtoi(setting.second, number) || *number < 0) {
      return wrong;
    }
  }
  if (rule.every < 1) return wrong;
  return rule;
}

bool ProxyRule::Matches(const std::string& connecting,
                        const std::string& listening, bool back) const {
  return Names(from, connecting) && Names(to, listening) &&
         (direction == Direction::kBoth ||
          (direction == Direction::kBack) == back);
}

}  // namespace tributary::testing
