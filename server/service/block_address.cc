// SPDX-License-Identifier: Apache-2.0
#include "server/service/block_address.h"

#include "absl/strings/str_cat.h"
#include "common/base/mutation.h"
#include "server/store/rejection.h"

namespace tributary {
namespace {

absl::Status OtherPlan(const v1::Plan& plan, const v1::BlockAddress& address) {
  const std::string difference = absl::StrCat(
      "call for job ", address.job_id(), ", plan epoch ", address.plan_epoch(),
      "; this server has job ", plan.job_id(), ", plan epoch ", plan.epoch());
  if (address.job_id() == plan.job_id() &&
      address.plan_epoch() > plan.epoch()) {
    return absl::UnavailableError(
        absl::StrCat(difference, " and waits for the new one; try again"));
  }
  return Reject(Rejection::kEpoch, absl::FailedPreconditionError(absl::StrCat(
                                       difference, ": fetch the plan")));
}

}  // namespace

absl::Status CheckBlockAddress(const v1::Plan* plan, int shard,
                               size_t num_blocks,
                               const v1::BlockAddress& address) {
  if (plan == nullptr) {
    return Reject(
        Rejection::kNoPlan,
        absl::UnavailableError("this server has no plan yet; try again"));
  }
  if (address.job_id() != plan->job_id() ||
      (address.plan_epoch() != plan->epoch() &&
       !TRIBUTARY_MUTATED("no-epoch-fence"))) {
    return OtherPlan(*plan, address);
  }
  if (address.shard() != static_cast<uint32_t>(shard)) {
    return Reject(Rejection::kAddress, absl::InvalidArgumentError(absl::StrCat(
                                           "call for shard ", address.shard(),
                                           " at the server of ", shard)));
  }
  if (address.block() >= num_blocks) {
    return Reject(Rejection::kAddress,
                  absl::InvalidArgumentError(
                      absl::StrCat("block ", address.block(), " of shard ",
                                   shard, ", wanted below ", num_blocks)));
  }
  return absl::OkStatus();
}

}  // namespace tributary
