// SPDX-License-Identifier: Apache-2.0
#include "kernels/nccl_arithmetic.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace tributary {
namespace {

// Longer lists of settings become a hash: a coordinator refuses long texts.
constexpr size_t kMostBytes = 512;

bool BeginsWith(const std::string& text, const char* prefix) {
  return text.rfind(prefix, 0) == 0;
}

bool Counts(const std::string& setting) {
  return BeginsWith(setting, "NCCL_") && !BeginsWith(setting, "NCCL_DEBUG") &&
         !BeginsWith(setting, "NCCL_HOSTID=") &&
         !BeginsWith(setting, "NCCL_SOCKET_");
}

// FNV-1a (draft-eastlake-fnv), 64 bits.
uint64_t HashOf(const std::string& text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  return hash;
}

}  // namespace

std::string DescribeNccl(int version, std::vector<std::string> settings,
                         const std::string& links) {
  std::string text = ", NCCL " + std::to_string(version / 10000) + "." +
                     std::to_string(version / 100 % 100) + "." +
                     std::to_string(version % 100);
  std::sort(settings.begin(), settings.end());
  std::string counting;
  int number = 0;
  for (const std::string& setting : settings) {
    if (!Counts(setting)) continue;
    counting += ", " + setting;
    ++number;
  }
  if (counting.size() > kMostBytes) {
    char hash[17];
    snprintf(hash, sizeof(hash), "%016llx",
             static_cast<unsigned long long>(HashOf(counting)));
    counting =
        ", " + std::to_string(number) + " settings of NCCL (" + hash + ")";
  }
  text += counting;
  if (!links.empty()) text += ", links " + links;
  return text;
}

}  // namespace tributary
