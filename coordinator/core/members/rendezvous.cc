// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/members/rendezvous.h"

#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/member/answer_limits.h"
#include "common/status/status_macros.h"
#include "coordinator/core/members/name_list.h"

namespace tributary {
namespace {

std::string Ranks(const google::protobuf::RepeatedField<uint32_t>& ranks) {
  return RankList({ranks.begin(), ranks.end()});
}

}  // namespace

void Rendezvous::Begin(uint64_t plan_epoch) {
  if (plan_epoch == plan_epoch_) return;
  plan_epoch_ = plan_epoch;
  groups_.clear();
}

absl::Status Rendezvous::CheckBounds(const v1::ExchangeRequest& request) const {
  const std::set<uint32_t> ranks(request.ranks().begin(),
                                 request.ranks().end());
  if (ranks.count(request.rank()) == 0 || *ranks.rbegin() >= num_ranks_ ||
      ranks.size() != static_cast<size_t>(request.ranks_size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("a group has different ranks below ", num_ranks_,
                     ", one of them its sender's; got ", request.ranks_size(),
                     " of them from rank ", request.rank()));
  }
  if (request.payload().size() > kMaxPayloadBytes ||
      request.group().size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a payload has at most ", kMaxPayloadBytes,
        " bytes and a group's name ", kMaxNameBytes, ", got ",
        request.payload().size(), " and ", request.group().size()));
  }
  const bool fit = absl::c_all_of(request.parts(), [](const auto& part) {
    return part.size() <= kMaxPartBytes;
  });
  if (!fit || (request.parts_size() > 0 &&
               request.parts_size() != request.ranks_size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", request.rank(), " sends ", request.parts_size(),
                     " parts to ", request.ranks_size(),
                     " ranks; wanted none or one for each, of at most ",
                     kMaxPartBytes, " bytes"));
  }
  if (groups_.count(request.group()) == 0 && groups_.size() >= kMaxGroups) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", kMaxGroups, " groups already"));
  }
  return absl::OkStatus();
}

absl::Status Rendezvous::Put(const v1::ExchangeRequest& request) {
  TRIBUTARY_RETURN_IF_ERROR(CheckBounds(request));
  Group& group = groups_[request.group()];
  if (group.ranks.empty()) {
    group.ranks.assign(request.ranks().begin(), request.ranks().end());
    group.sent.resize(group.ranks.size());
    group.missing = group.ranks.size();
  }
  if (!std::equal(group.ranks.begin(), group.ranks.end(),
                  request.ranks().begin(), request.ranks().end())) {
    return absl::InvalidArgumentError(
        absl::StrCat("group ", request.group(), " has ", RankList(group.ranks),
                     ", got ", Ranks(request.ranks())));
  }
  std::optional<Sent>& own = group.sent[group.PlaceOf(request.rank())];
  Sent sent{request.payload(),
            {request.parts().begin(), request.parts().end()}};
  if (group.missing == 0) {
    if (own == sent) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("group ", request.group(),
                     " is complete, with another rank ", request.rank()));
  }
  if (!own) --group.missing;
  own = std::move(sent);
  return absl::OkStatus();
}

size_t Rendezvous::Group::PlaceOf(uint32_t rank) const {
  return static_cast<size_t>(absl::c_find(ranks, rank) - ranks.begin());
}

bool Rendezvous::IsComplete(const std::string& group) const {
  const auto found = groups_.find(group);
  return found != groups_.end() && found->second.missing == 0;
}

std::optional<v1::ExchangeResponse> Rendezvous::AnswerTo(
    uint32_t rank, const std::string& name) const {
  if (!IsComplete(name)) return std::nullopt;
  const Group& group = groups_.at(name);
  const size_t place = group.PlaceOf(rank);
  if (place == group.ranks.size()) return std::nullopt;
  v1::ExchangeResponse answer;
  for (const std::optional<Sent>& sent : group.sent) {
    std::string* const payload = answer.add_payloads();
    *payload = sent->payload;
    if (!sent->parts.empty()) *payload += sent->parts[place];
  }
  return answer;
}

std::vector<uint32_t> Rendezvous::Missing(const std::string& group) const {
  std::vector<uint32_t> missing;
  const auto found = groups_.find(group);
  if (found == groups_.end()) return {};
  for (size_t m = 0; m < found->second.sent.size(); ++m) {
    if (!found->second.sent[m]) missing.push_back(found->second.ranks[m]);
  }
  return missing;
}

}  // namespace tributary
