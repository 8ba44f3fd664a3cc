// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/members/membership.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/host/address.h"
#include "common/status/status_macros.h"
#include "common/wire/identity/role_name.h"
#include "coordinator/core/members/name_list.h"

namespace tributary {
namespace {

absl::Status CheckRegistration(const v1::RegisterRequest& request,
                               size_t num_places) {
  if (request.instance().empty() ||
      request.instance().size() > Place::kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("instance must have 1 to ", Place::kMaxNameBytes,
                     " bytes, got ", request.instance().size()));
  }
  if (request.host().size() > Place::kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("host must have at most ", Place::kMaxNameBytes,
                     " bytes, got ", request.host().size()));
  }
  if (request.arithmetic().size() > Place::kMaxSentenceBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("arithmetic must have at most ", Place::kMaxSentenceBytes,
                     " bytes, got ", request.arithmetic().size()));
  }
  if (!request.metrics_address().empty()) {
    TRIBUTARY_RETURN_IF_ERROR(CheckAddress(request.metrics_address()));
  }
  if (request.has_wanted_index() && request.wanted_index() >= num_places) {
    return absl::InvalidArgumentError(
        absl::StrCat(RoleName(request.role()), " ", request.wanted_index(),
                     " is wanted, but the job has ", num_places, " of them"));
  }
  if (request.role() == v1::ROLE_SERVER || !request.address().empty()) {
    return CheckAddress(request.address());
  }
  return absl::OkStatus();
}

template <typename Predicate>
bool All(absl::Span<const Place> places, const Predicate& holds) {
  return std::all_of(places.begin(), places.end(), holds);
}

}  // namespace

Membership::Membership(int num_servers, int num_workers, int64_t lease_micros)
    : lease_micros_(lease_micros),
      num_servers_(static_cast<size_t>(num_servers)),
      places_(num_servers_ + static_cast<size_t>(num_workers)) {
  for (v1::Role role : {v1::ROLE_SERVER, v1::ROLE_WORKER}) {
    uint32_t index = 0;
    for (Place& place : Places(role)) {
      place.role = role;
      place.index = index++;
    }
  }
}

absl::Span<Place> Membership::Places(v1::Role role) {
  const absl::Span<Place> all = absl::MakeSpan(places_);
  if (role == v1::ROLE_SERVER) return all.first(num_servers_);
  if (role == v1::ROLE_WORKER) return all.subspan(num_servers_);
  return {};
}

Place* Membership::Find(v1::Role role, uint32_t index) {
  const absl::Span<Place> places = Places(role);
  return index < places.size() ? &places[index] : nullptr;
}

absl::StatusOr<const Place*> Membership::Register(
    const v1::RegisterRequest& request, int64_t now_micros) {
  if (request.role() != v1::ROLE_SERVER && request.role() != v1::ROLE_WORKER) {
    return absl::InvalidArgumentError(
        absl::StrCat("role must be server or worker, got ", request.role()));
  }
  const absl::Span<Place> places = Places(request.role());
  TRIBUTARY_RETURN_IF_ERROR(CheckRegistration(request, places.size()));

  Place* found = nullptr;
  for (Place& place : places) {
    if (place.holder.instance() == request.instance()) {
      found = &place;
      break;
    }
    if (place.alive && request.role() == v1::ROLE_SERVER &&
        place.holder.address() == request.address()) {
      return absl::AlreadyExistsError(absl::StrCat(
          "address ", request.address(), " is held by ", place.Name()));
    }
    const bool wanted =
        !request.has_wanted_index() || request.wanted_index() == place.index;
    if (found == nullptr && wanted && !place.alive && !place.finished) {
      found = &place;
    }
  }
  if (found == nullptr) {
    const std::string what =
        request.has_wanted_index()
            ? absl::StrCat(RoleName(request.role()), " ",
                           request.wanted_index(), " is taken")
            : absl::StrCat("all ", places.size(), " places for a ",
                           RoleName(request.role()), " are taken");
    return absl::AlreadyExistsError(absl::StrCat(what, " by living members"));
  }
  if (!found->alive || found->holder.instance() != request.instance()) {
    found->incarnation = ++last_incarnation_;
    ++found->holders;
    found->figures = {};
    found->reported_epoch = 0;
    found->begun_step = 0;
    found->stop_bound = -1;
    found->cut_step = found->stands_at = 0;
    found->alive = true;
  }
  ++revision_;
  const std::string before = found->holder.arithmetic();
  found->holder = request;
  found->holder.DiscardUnknownFields();
  if (!before.empty() && before != request.arithmetic()) {
    found->holder.set_arithmetic(
        request.arithmetic().empty() ? before : kSeveralArithmetics);
  }
  found->last_heartbeat_micros = now_micros;
  return found;
}

absl::StatusOr<const Place*> Membership::Renew(v1::Role role, uint32_t index,
                                               uint64_t incarnation,
                                               int64_t now_micros) {
  Place* const place = Find(role, index);
  if (place == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the job has ", servers().size(), " servers and ", workers().size(),
        " workers; there is no place ", index, " for role ", role));
  }
  if (place->incarnation != incarnation || !place->alive) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the lease of ", place->ShortName(), " as incarnation ", incarnation,
        " is lost", place->alive ? " to a newer one" : "", "; register again"));
  }
  place->last_heartbeat_micros = now_micros;
  return place;
}

absl::Status Membership::CheckHolder(v1::Role role, uint32_t index,
                                     uint64_t incarnation) const {
  const bool is_server = role == v1::ROLE_SERVER;
  const absl::Span<const Place> places = is_server ? servers() : workers();
  if (index < places.size() && places[index].alive &&
      places[index].incarnation == incarnation) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      is_server ? "server " : "rank ", index, " is not held by incarnation ",
      incarnation, "; the place was lost, or another process holds it"));
}

int64_t Membership::Report(const v1::HeartbeatRequest& heartbeat,
                           bool in_force) {
  Place& place = *Find(heartbeat.role(), heartbeat.index());
  place.figures = MemberFigures::Of(heartbeat, workers().size());
  int64_t begun = heartbeat.begun_step();
  if (heartbeat.plan_epoch() == place.reported_epoch) {
    begun = std::max(begun, place.begun_step);
  }
  place.reported_epoch = heartbeat.plan_epoch();
  place.begun_step = in_force ? begun : 0;
  place.cut_step = in_force ? heartbeat.cut_step() : 0;
  place.stands_at = in_force ? heartbeat.stands_at() : 0;
  return begun;
}

void Membership::TellEnd(const v1::HeartbeatRequest& heartbeat) {
  Place* const place = Find(heartbeat.role(), heartbeat.index());
  if (place == nullptr || place->incarnation != heartbeat.incarnation()) return;
  place->knows_end = true;
  place->figures = MemberFigures::Of(heartbeat, workers().size());
}

void Membership::SetFinished(uint32_t worker, bool finished) {
  Place& place = *Find(v1::ROLE_WORKER, worker);
  if (place.finished != finished) ++revision_;
  place.finished = finished;
}

void Membership::SetPaused(uint32_t worker, int64_t begun_step) {
  Find(v1::ROLE_WORKER, worker)->stop_bound = begun_step;
}

void Membership::ForgetPauses() {
  for (Place& place : places_) place.stop_bound = -1;
}

bool Membership::WorkersStandAt(int64_t step) const {
  return All(workers(), [step](const Place& worker) {
    return worker.finished || worker.stands_at >= step;
  });
}

bool Membership::ServersHaveCut(int64_t step) const {
  return All(servers(),
             [step](const Place& server) { return server.cut_step >= step; });
}

std::vector<const Place*> Membership::Expire(int64_t now_micros) {
  std::vector<const Place*> lost;
  for (Place& place : places_) {
    if (!place.alive ||
        now_micros - place.last_heartbeat_micros <= lease_micros_) {
      continue;
    }
    ++revision_;
    place.alive = false;
    if (place.finished) continue;
    ++place.losses;
    lost.push_back(&place);
  }
  return lost;
}

const Place* Membership::Expel(v1::Role role, uint32_t index, int64_t pid) {
  Place* const place = Find(role, index);
  if (place == nullptr || place->incarnation == 0 ||
      place->holder.pid() != pid) {
    return nullptr;
  }
  ++revision_;
  place->alive = false;
  ++place->losses;
  return place;
}

// Two processes of one machine cannot listen on one address, so the earlier
// holder is gone if it is silent as well. Silence is required because
// containers may share a host name and an address.
const Place* Membership::ExpelSilentServer(const v1::RegisterRequest& request,
                                           int64_t silent_since_micros) {
  if (request.role() != v1::ROLE_SERVER) return nullptr;
  for (const Place& server : servers()) {
    if (server.alive && server.last_heartbeat_micros < silent_since_micros &&
        server.holder.address() == request.address() &&
        server.holder.host() == request.host() &&
        server.holder.instance() != request.instance()) {
      return Expel(server.role, server.index, server.holder.pid());
    }
  }
  return nullptr;
}

std::vector<const Place*> Membership::ExpelProcess(v1::Role role,
                                                   uint32_t index,
                                                   int64_t pid) {
  std::vector<const Place*> expelled;
  const Place* const one = Expel(role, index, pid);
  if (one == nullptr) return expelled;
  expelled.push_back(one);
  for (const Place& place : Places(role)) {
    if (place.alive && place.holder.host() == one->holder.host() &&
        Expel(role, place.index, pid) != nullptr) {
      expelled.push_back(&place);
    }
  }
  return expelled;
}

void Membership::StartOver() {
  ++revision_;
  for (Place& worker : Places(v1::ROLE_WORKER)) {
    worker.finished = false;
    worker.stop_bound = -1;
    worker.begun_step = 0;
    worker.stands_at = 0;
  }
}

void Membership::RenewAll(int64_t now_micros) {
  for (Place& place : places_) {
    if (place.alive) place.last_heartbeat_micros = now_micros;
  }
}

void Membership::Save(v1::CoordinatorState* state) const {
  state->set_last_incarnation(last_incarnation_);
  for (const Place& place : places_) {
    if (place.incarnation == 0) continue;
    v1::PlaceState* saved = state->add_places();
    *saved->mutable_holder() = place.holder;
    saved->set_index(place.index);
    saved->set_incarnation(place.incarnation);
    saved->set_alive(place.alive);
    saved->set_finished(place.finished);
    saved->set_losses(place.losses);
  }
}

void Membership::Restore(const v1::CoordinatorState& state,
                         int64_t now_micros) {
  ++revision_;
  last_incarnation_ = state.last_incarnation();
  for (const v1::PlaceState& saved : state.places()) {
    Place* const place = Find(saved.holder().role(), saved.index());
    if (place == nullptr) continue;
    place->holder = saved.holder();
    place->incarnation = saved.incarnation();
    place->alive = saved.alive();
    place->finished = saved.finished();
    place->losses = saved.losses();
    place->last_heartbeat_micros = now_micros;
  }
}

bool Membership::ServersComplete() const {
  return All(servers(), [](const Place& server) { return server.alive; });
}

bool Membership::Complete() const {
  return All(places(), [](const Place& place) { return place.alive; });
}

bool Membership::AnyWorkerAlive() const {
  return !All(workers(), [](const Place& worker) { return !worker.alive; });
}

bool Membership::AllWorkersFinished() const {
  return All(workers(), [](const Place& worker) { return worker.finished; });
}

bool Membership::AllHeardSince(int64_t micros) const {
  return All(places(), [micros](const Place& place) {
    return place.last_heartbeat_micros >= micros;
  });
}

bool Membership::EveryoneKnowsEnd() const {
  return All(places(), [](const Place& place) {
    return !place.alive || place.knows_end;
  });
}

int64_t Membership::HighestBegun() const {
  int64_t highest = 0;
  for (const Place& worker : workers()) {
    highest = std::max(highest, worker.begun_step);
  }
  return highest;
}

// A process registers its own rank before the ranks that it takes over. On
// another host the coordinator sees only the end of the launcher. By then the
// rank that it started may be held by another launcher's process, and that
// process is alive.
bool Membership::IsAdopted(uint32_t rank, int64_t pid) const {
  if (rank >= workers().size()) return false;
  const Place& place = workers()[rank];
  return place.holder.pid() == pid &&
         !All(workers(), [&place](const Place& other) {
           return !other.alive || other.incarnation >= place.incarnation ||
                  other.holder.pid() != place.holder.pid() ||
                  other.holder.host() != place.holder.host();
         });
}

std::string Membership::Missing(bool declared) const {
  std::vector<std::string> names;
  for (const Place& place : places_) {
    if (!place.alive) names.push_back(place.ShortName());
  }
  if (!declared) names.push_back("the model");
  return NameList(names);
}

}  // namespace tributary
