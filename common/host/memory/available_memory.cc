// SPDX-License-Identifier: Apache-2.0
#include "common/host/memory/available_memory.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/host/format_bytes.h"

namespace tributary {
namespace {

std::string TextOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

// The number after `name` in lines such as "MemAvailable:   123 kB".
std::optional<uint64_t> Field(const std::string& text,
                              const std::string& name) {
  for (const auto line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(": \t"), absl::SkipEmpty());
    uint64_t number = 0;
    if (words.size() > 1 && words[0] == name &&
        absl::SimpleAtoi(words[1], &number)) {
      return number;
    }
  }
  return std::nullopt;
}

// Returns the only number in a file; nullopt: there is none, as in "max".
std::optional<uint64_t> NumberIn(const std::string& path) {
  uint64_t number = 0;
  if (!absl::SimpleAtoi(TextOf(path), &number)) return std::nullopt;
  return number;
}

// The file names of one version of control groups.
struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* page_cache[2];  // fields of memory.stat
};
constexpr GroupFiles kVersion2 = {
    "memory.max", "memory.current", {"active_file", "inactive_file"}};
constexpr GroupFiles kVersion1 = {"memory.limit_in_bytes",
                                  "memory.usage_in_bytes",
                                  {"total_active_file", "total_inactive_file"}};

// The memory that one group's limit leaves; nullopt: the group has no limit.
std::optional<uint64_t> LeftIn(const std::string& folder,
                               const GroupFiles& files) {
  const auto limit = NumberIn(absl::StrCat(folder, "/", files.limit));
  const auto usage = NumberIn(absl::StrCat(folder, "/", files.usage));
  if (!limit || !usage) return std::nullopt;
  const std::string stat = TextOf(folder + "/memory.stat");
  uint64_t cache = 0;
  for (const char* name : files.page_cache) {
    cache += Field(stat, name).value_or(0);
  }
  const uint64_t used = *usage - std::min(*usage, cache);
  return *limit - std::min(*limit, used);
}

// Lowers `available` to the smallest amount that the group `path` or one of its
// parents leaves.
void HeedGroups(const std::string& root, const std::string& mount,
                std::string path, const GroupFiles& files,
                AvailableMemory* available) {
  while (true) {
    const std::string folder = mount + path;
    if (const auto left = LeftIn(root + folder, files);
        left && *left < available->bytes) {
      *available = {*left, absl::StrCat(files.limit, " of ", folder)};
    }
    if (path.empty()) return;
    path.resize(path.rfind('/'));
  }
}

}  // namespace

std::optional<AvailableMemory> ReadAvailableMemory(const std::string& root) {
  const std::string meminfo = TextOf(root + "/proc/meminfo");
  const auto free = Field(meminfo, "MemAvailable");
  if (!free) return std::nullopt;
  AvailableMemory available = {
      1024 * (*free + Field(meminfo, "SwapFree").value_or(0)),
      "MemAvailable and SwapFree of /proc/meminfo"};
  // Lines are "HIERARCHY:CONTROLLERS:/PATH"; version 2 is "0::/PATH".
  for (const auto line :
       absl::StrSplit(TextOf(root + "/proc/self/cgroup"), '\n')) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || !absl::StartsWith(parts[2], "/")) continue;
    const std::string path = parts[2] == "/" ? "" : parts[2];
    if (parts[0] == "0" && parts[1].empty()) {
      HeedGroups(root, "/sys/fs/cgroup", path, kVersion2, &available);
    } else if (absl::StrContains(absl::StrCat(",", parts[1], ","),
                                 ",memory,")) {
      HeedGroups(root, "/sys/fs/cgroup/memory", path, kVersion1, &available);
    }
  }
  return available;
}

absl::Status CheckClaim(const MemoryClaim& claim,
                        const std::optional<AvailableMemory>& available) {
  if (!available || claim.bytes <= available->bytes) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(claim.who, " needs at least ", FormatBytes(claim.bytes),
                   " of memory for ", claim.purpose, ", but this machine has ",
                   FormatBytes(available->bytes), " left (", available->source,
                   "); ", claim.remedy));
}

}  // namespace tributary
