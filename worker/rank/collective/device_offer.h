// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tributary {

// A rank's offer, exchanged before a group chooses its backend: the device on
// which the rank could use NCCL, or why it can't.
struct DeviceOffer {
  std::string device_id;  // NcclApi::device_id; empty: NCCL cannot be used
  std::string why_not;

  std::string Encode() const;
  static DeviceOffer Decode(const std::string& text);
};

// True when the group uses NCCL, which requires that every rank has its own
// device. The result depends only on the offers (by rank), so all ranks get the
// same one. `why` gets the reason against NCCL; if `required`, such a reason
// makes the result FailedPrecondition. ranks: the job's numbers of the ranks.
absl::StatusOr<bool> AgreeOnNccl(absl::Span<const std::string> offers,
                                 absl::Span<const int> ranks, bool required,
                                 std::string* why);

}  // namespace tributary
