// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/collective/device_offer.h"

#include <map>

#include "absl/strings/str_cat.h"

namespace tributary {

std::string DeviceOffer::Encode() const {
  return device_id.empty() ? "-" + why_not : "+" + device_id;
}

DeviceOffer DeviceOffer::Decode(const std::string& text) {
  if (text.size() > 1 && text[0] == '+') return {text.substr(1), ""};
  return {"", text.empty() ? "it said nothing" : text.substr(1)};
}

absl::StatusOr<bool> AgreeOnNccl(absl::Span<const std::string> offers,
                                 absl::Span<const int> ranks, bool required,
                                 std::string* why) {
  why->clear();
  std::map<std::string, int> first;  // the first rank with each device
  for (size_t r = 0; r < offers.size() && why->empty(); ++r) {
    const DeviceOffer offer = DeviceOffer::Decode(offers[r]);
    if (offer.device_id.empty()) {
      *why = absl::StrCat("rank ", ranks[r], ": ", offer.why_not);
      break;
    }
    const auto [found, is_new] = first.emplace(offer.device_id, ranks[r]);
    if (!is_new) {
      *why = absl::StrCat("ranks ", found->second, " and ", ranks[r],
                          " have one device, NCCL wants one for each");
    }
  }
  if (why->empty()) return true;
  if (!required) return false;
  return absl::FailedPreconditionError(
      absl::StrCat("backend: nccl cannot be used: ", *why));
}

}  // namespace tributary
