#include "server/coordinator/rendezvous.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tributary {

void Rendezvous::Begin(uint64_t plan_epoch) {
  if (plan_epoch == plan_epoch_) return;
  plan_epoch_ = plan_epoch;
  groups_.clear();
}

absl::Status Rendezvous::Put(const v1::ExchangeRequest& request) {
  if (request.size() < 1 || request.size() > max_size_ ||
      request.member() >= request.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a group has 1 to ", max_size_,
                     " members, each with a number below; "
                     "got member ",
                     request.member(), " of ", request.size()));
  }
  if (request.payload().size() > kMaxPayloadBytes ||
      request.group().size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a payload has at most ", kMaxPayloadBytes,
        " bytes and a group's name ", kMaxNameBytes, ", got ",
        request.payload().size(), " and ", request.group().size()));
  }
  if (groups_.count(request.group()) == 0 && groups_.size() >= kMaxGroups) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there are ", kMaxGroups, " groups already"));
  }
  Group& group = groups_[request.group()];
  if (group.payloads.empty()) {
    group.payloads.resize(request.size());
    group.missing = request.size();
  }
  if (group.payloads.size() != request.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("group ", request.group(), " has ", group.payloads.size(),
                     " members, got ", request.size()));
  }
  std::optional<std::string>& own = group.payloads[request.member()];
  if (group.missing == 0) {
    if (own == request.payload()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("group ", request.group(),
                     " is complete, with another member ", request.member()));
  }
  if (!own) --group.missing;
  own = request.payload();
  if (group.missing > 0) return absl::OkStatus();
  for (const std::optional<std::string>& payload : group.payloads) {
    group.complete.add_payloads(*payload);
  }
  return absl::OkStatus();
}

const v1::ExchangeResponse* Rendezvous::Complete(
    const std::string& group) const {
  const auto found = groups_.find(group);
  if (found == groups_.end() || found->second.missing > 0) return nullptr;
  return &found->second.complete;
}

std::string Rendezvous::Missing(const std::string& group) const {
  std::vector<size_t> missing;
  const auto found = groups_.find(group);
  if (found == groups_.end()) return "";
  for (size_t m = 0; m < found->second.payloads.size(); ++m) {
    if (!found->second.payloads[m]) missing.push_back(m);
  }
  return absl::StrJoin(missing, ", ");
}

}  // namespace tributary
