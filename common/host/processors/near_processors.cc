// SPDX-License-Identifier: Apache-2.0
#include "common/host/processors/near_processors.h"

#include <sched.h>

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/host/small_file.h"

namespace tributary {
namespace {

// Parses "0-3,8"; nullopt: not such a list, or it names a processor beyond
// CPU_SETSIZE.
std::optional<cpu_set_t> ParseList(absl::string_view text) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const absl::string_view range : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(range, absl::MaxSplits('-', 1));
    int first = 0, last = 0;
    if (!absl::SimpleAtoi(ends.first, &first)) return std::nullopt;
    last = first;
    const bool is_range = ends.first.size() < range.size();
    if (is_range && !absl::SimpleAtoi(ends.second, &last)) return std::nullopt;
    if (first < 0 || last < first || last >= CPU_SETSIZE) return std::nullopt;
    for (int processor = first; processor <= last; ++processor) {
      CPU_SET(processor, &set);
    }
  }
  return set;
}

std::string ToList(const cpu_set_t& set) {
  std::string text;
  for (int first = 0; first < CPU_SETSIZE; ++first) {
    if (!CPU_ISSET(first, &set)) continue;
    int last = first;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set)) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", first);
    if (last > first) absl::StrAppend(&text, "-", last);
    first = last;
  }
  return text;
}

}  // namespace

std::string StayNear(const std::string& pci_id, const std::string& folder) {
  if (pci_id.empty()) return "";
  const std::string text =
      ReadText(absl::StrCat(folder, "/bus/pci/devices/",
                            absl::AsciiStrToLower(pci_id), "/local_cpulist"));
  const std::optional<cpu_set_t> near =
      ParseList(absl::StripAsciiWhitespace(text));
  cpu_set_t now, stays;
  CPU_ZERO(&now);
  if (!near || sched_getaffinity(0, sizeof(now), &now) != 0) return "";
  CPU_AND(&stays, &now, &*near);
  if (CPU_COUNT(&stays) == 0 || CPU_EQUAL(&stays, &now)) return "";
  if (sched_setaffinity(0, sizeof(stays), &stays) != 0) return "";
  return ToList(stays);
}

}  // namespace tributary
