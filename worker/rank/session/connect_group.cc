// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/connect_group.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "common/host/address.h"
#include "common/job/job_options.h"
#include "common/status/status_macros.h"
#include "kernels/nccl_api.h"
#include "spdlog/spdlog.h"
#include "worker/rank/collective/device_offer.h"
#include "worker/rank/collective/mesh.h"
#include "worker/rank/collective/nccl_communicator.h"
#include "worker/rank/collective/peer_communicator.h"
#include "worker/rank/collective/staged_communicator.h"

namespace tributary {
namespace {

// This worker's side of a group that is being connected.
struct GroupSide {
  const GroupParts& parts;
  const v1::Plan& plan;
  const GroupSpec& group;
  int rank;  // in the group
  absl::Duration timeout;

  int size() const { return static_cast<int>(group.ranks.size()); }
  // Short: a rank that has sent its address connects soon, or is lost.
  absl::Duration connect_timeout() const {
    return std::min(timeout, parts.member->lease());
  }
  // Exchanges the messages of all ranks about `what`, in the group's order.
  ExchangeBytes Exchange(const std::string& what) const {
    return [exchange = ExchangeEach(what)](std::string bytes) {
      return exchange(std::move(bytes), {});
    };
  }
  ExchangeParts ExchangeEach(const std::string& what) const {
    return [side = *this, name = group.name + what](
               std::string bytes, const std::vector<std::string>& for_each) {
      return side.parts.member->Exchange(side.plan.epoch(), name,
                                         side.group.ranks, std::move(bytes),
                                         side.timeout, for_each);
    };
  }
};

absl::StatusOr<std::unique_ptr<Mesh>> ConnectMesh(const GroupSide& side) {
  const GroupParts& parts = side.parts;
  if (StrategyOf(parts.member->job()).one_process()) {
    return parts.local_meshes->Take(side.plan.epoch(), side.group.name,
                                    side.rank, side.size());
  }
  TRIBUTARY_FAILPOINT("worker-group-connects");
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string host,
                             LocalHostTowards(parts.coordinator));
  TRIBUTARY_RETURN_IF_ERROR(
      parts.access->CheckListenInClear(absl::StrCat(host, ":0")));
  return ConnectGlooMesh({.rank = side.rank,
                          .size = side.size(),
                          .host = host,
                          .connect_timeout = side.connect_timeout(),
                          .exchange = side.ExchangeEach("")});
}

// Returns the NCCL functions if the group agrees on NCCL, else null.
absl::StatusOr<std::unique_ptr<NcclApi>> ChooseNccl(const GroupSide& side,
                                                    std::string* why_not) {
  const v1::CollectiveBackend wanted = side.group.backend;
  std::unique_ptr<NcclApi> api;
  if (wanted == v1::COLLECTIVE_BACKEND_GLOO) return api;
  DeviceOffer own;
  api = OpenNccl(side.parts.ops, &own.why_not);
  if (api != nullptr) own = {.device_id = api->device_id(), .why_not = ""};
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<std::string> offers,
                             side.Exchange("/offer")(own.Encode()));
  TRIBUTARY_ASSIGN_OR_RETURN(
      const bool agreed,
      AgreeOnNccl(offers, side.group.ranks,
                  wanted == v1::COLLECTIVE_BACKEND_NCCL, why_not));
  if (!agreed) api.reset();
  return api;
}

absl::StatusOr<std::unique_ptr<Communicator>> ConnectNccl(
    const GroupSide& side, std::unique_ptr<NcclApi> api,
    std::unique_ptr<Mesh> mesh) {
  NcclCommunicator::Options options;
  options.api = std::move(api);
  options.ops = side.parts.ops;
  options.mesh = std::move(mesh);
  options.exchange = side.Exchange("/nccl");
  options.messages = side.group.messages;
  options.timeouts.call = options.timeouts.connect = side.timeout;
  options.timeouts.skew = std::min(side.timeout / 8, absl::Seconds(15));
  options.ranks = side.group.ranks;
  return NcclCommunicator::Connect(std::move(options));
}

}  // namespace

Ops* HostOps() {
  static const std::unique_ptr<Ops> ops = CreateCpuOps();
  return ops.get();
}

absl::StatusOr<std::unique_ptr<Communicator>> ConnectGroup(
    const GroupParts& parts, const v1::Plan& plan, const GroupSpec& group) {
  const auto found = std::find(group.ranks.begin(), group.ranks.end(),
                               static_cast<int>(parts.member->index()));
  TRIBUTARY_CHECK(found != group.ranks.end());
  const GroupSide side{.parts = parts,
                       .plan = plan,
                       .group = group,
                       .rank = static_cast<int>(found - group.ranks.begin()),
                       .timeout = absl::Seconds(
                           StrategyOf(parts.member->job()).timeout_seconds)};
  std::string why_not;
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<NcclApi> api,
                             ChooseNccl(side, &why_not));
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<Mesh> mesh, ConnectMesh(side));
  const bool on_host = parts.ops->is_host();
  std::string over = api != nullptr ? "nccl" : mesh->backend();
  if (api == nullptr && !on_host) over += ", through host memory";
  if (!why_not.empty() && !on_host) over += ": " + why_not;
  spdlog::info("rank {} of {} in group {} over {}", side.rank, side.size(),
               group.name, over);
  if (api != nullptr) {
    return ConnectNccl(side, std::move(api), std::move(mesh));
  }
  auto peers = std::make_unique<PeerCommunicator>(
      PeerCommunicator::Options{.mesh = std::move(mesh),
                                .ops = on_host ? parts.ops : HostOps(),
                                .timeout = side.timeout,
                                .ranks = group.ranks});
  if (on_host) return peers;
  return std::make_unique<StagedCommunicator>(
      StagedCommunicator::Options{.host = std::move(peers), .ops = parts.ops});
}

}  // namespace tributary
