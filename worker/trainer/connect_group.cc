#include "worker/trainer/connect_group.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/check.h"
#include "common/job/job_options.h"
#include "common/status_macros.h"
#include "spdlog/spdlog.h"
#include "worker/collective/mesh.h"
#include "worker/collective/peer_communicator.h"

namespace tributary {
namespace {

absl::StatusOr<std::unique_ptr<Mesh>> ConnectMesh(const GroupParts& parts,
                                                  const v1::Plan& plan,
                                                  const std::string& name,
                                                  int rank, int size,
                                                  absl::Duration timeout) {
  Member& member = *parts.member;
  if (member.job().strategy().has_data_parallel()) {
    return parts.local_meshes->Take(plan.epoch(), name, rank, size);
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string host,
                             LocalHostTowards(parts.coordinator));
  return ConnectGlooMesh({.rank = rank,
                          .size = size,
                          .host = host,
                          .connect_timeout = timeout,
                          .exchange = [&](std::string addresses) {
                            return member.Exchange(plan.epoch(), name, rank,
                                                   size, std::move(addresses),
                                                   timeout);
                          }});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> ConnectGroup(
    const GroupParts& parts, const v1::Plan& plan, const std::string& name,
    const std::vector<int>& ranks) {
  Member& member = *parts.member;
  const v1::StrategySpec& strategy = member.job().strategy();
  const bool nccl =
      strategy.all_reduce().backend() == v1::COLLECTIVE_BACKEND_NCCL ||
      strategy.tensor_parallel().backend() == v1::COLLECTIVE_BACKEND_NCCL;
  if (!parts.ops->is_host() || nccl) {
    return absl::FailedPreconditionError(absl::StrCat(
        "groups of workers compute on the CPU, over gloo; this worker's device "
        "is ",
        parts.ops->device_name(), nccl ? ", the job's backend nccl" : ""));
  }
  const auto found =
      std::find(ranks.begin(), ranks.end(), static_cast<int>(member.index()));
  TRIBUTARY_CHECK(found != ranks.end());
  const int rank = static_cast<int>(found - ranks.begin());
  const int size = static_cast<int>(ranks.size());
  const absl::Duration timeout =
      absl::Seconds(StepTimeoutSeconds(member.job()));
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<Mesh> mesh,
      ConnectMesh(parts, plan, name, rank, size, timeout));
  spdlog::info("rank {} of {} in group {} over {}", rank, size, name,
               mesh->backend());
  return std::make_unique<PeerCommunicator>(
      PeerCommunicator::Options{.mesh = std::move(mesh),
                                .ops = parts.ops,
                                .timeout = timeout,
                                .ranks = ranks});
}

}  // namespace tributary
