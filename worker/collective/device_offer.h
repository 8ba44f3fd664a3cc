#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tributary {

// What a rank tells the others before a group decides how it exchanges arrays:
// which device it could use NCCL on, or why it can't.
struct DeviceOffer {
  std::string device_id;  // NcclApi::device_id; empty: none
  std::string why_not;

  std::string Encode() const;
  static DeviceOffer Decode(const std::string& text);
};

// Whether a group exchanges over NCCL: where every rank has a device of its
// own. The same answer on every rank, since it depends on the offers alone, by
// rank. `why` says why not. FailedPrecondition instead where it is `required`.
// ranks: what the job calls them.
absl::StatusOr<bool> AgreeOnNccl(absl::Span<const std::string> offers,
                                 absl::Span<const int> ranks, bool required,
                                 std::string* why);

}  // namespace tributary
