#include "coordinator/core/membership.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/host/address.h"
#include "common/status/status_macros.h"
#include "common/status/utf8.h"
#include "coordinator/core/name_list.h"

namespace tributary {
namespace {

constexpr size_t kMaxNameBytes = 256;
constexpr size_t kMaxSentenceBytes = 4096;

const char* RoleName(v1::Role role) {
  return role == v1::ROLE_SERVER ? "server" : "worker";
}

std::string ShortName(const Place& place) {
  return absl::StrCat(RoleName(place.role), " ", place.index);
}

absl::Status CheckRegistration(const v1::RegisterRequest& request,
                               size_t num_places) {
  if (request.instance().empty() || request.instance().size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("instance must have 1 to ", kMaxNameBytes, " bytes, got ",
                     request.instance().size()));
  }
  if (request.host().size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("host must have at most ", kMaxNameBytes, " bytes, got ",
                     request.host().size()));
  }
  if (request.arithmetic().size() > kMaxSentenceBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("arithmetic must have at most ", kMaxSentenceBytes,
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

// Limits the length of a text that a member sent: it is kept and shown until
// the member's next heartbeat.
void Shorten(std::string* text, size_t bytes) {
  text->resize(CutUtf8(*text, bytes).size());
}

}  // namespace

void Place::KeepFigures(const v1::HeartbeatRequest& heartbeat) {
  latest.set_bytes_sent(heartbeat.bytes_sent());
  latest.set_bytes_received(heartbeat.bytes_received());
  latest.set_peak_memory_bytes(heartbeat.peak_memory_bytes());
  latest.set_optimizer_seconds(heartbeat.optimizer_seconds());
}

void Place::Keep(const v1::HeartbeatRequest& heartbeat, size_t num_workers) {
  latest = heartbeat;
  latest.DiscardUnknownFields();
  latest.clear_steps();
  latest.clear_checkpoints();
  Shorten(latest.mutable_waiting_for(), kMaxSentenceBytes);
  Shorten(latest.mutable_error(), kMaxSentenceBytes);
  Shorten(latest.mutable_device(), kMaxNameBytes);
  Shorten(latest.mutable_broken_group(), kMaxSentenceBytes);
  if (latest.waiting_for_ranks_size() > static_cast<int>(num_workers)) {
    latest.mutable_waiting_for_ranks()->Truncate(static_cast<int>(num_workers));
  }
}

std::string Place::Name() const {
  return absl::StrCat(ShortName(*this), " (", holder.host(), ", pid ",
                      holder.pid(), ")");
}

Membership::Membership(int num_servers, int num_workers, int64_t lease_micros)
    : lease_micros_(lease_micros),
      servers_(num_servers),
      workers_(num_workers) {
  for (size_t i = 0; i < servers_.size(); ++i) {
    servers_[i].role = v1::ROLE_SERVER;
    servers_[i].index = static_cast<uint32_t>(i);
  }
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i].role = v1::ROLE_WORKER;
    workers_[i].index = static_cast<uint32_t>(i);
  }
}

std::vector<Place>* Membership::Places(v1::Role role) {
  if (role == v1::ROLE_SERVER) return &servers_;
  if (role == v1::ROLE_WORKER) return &workers_;
  return nullptr;
}

absl::StatusOr<const Place*> Membership::Register(
    const v1::RegisterRequest& request, int64_t now_micros) {
  std::vector<Place>* places = Places(request.role());
  if (places == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("role must be server or worker, got ", request.role()));
  }
  TRIBUTARY_RETURN_IF_ERROR(CheckRegistration(request, places->size()));

  Place* found = nullptr;
  for (Place& place : *places) {
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
            : absl::StrCat("all ", places->size(), " places for a ",
                           RoleName(request.role()), " are taken");
    return absl::AlreadyExistsError(absl::StrCat(what, " by living members"));
  }
  if (!found->alive || found->holder.instance() != request.instance()) {
    found->incarnation = ++last_incarnation_;
    ++found->holders;
    found->latest.Clear();
    found->stop_bound = -1;
    found->alive = true;
  }
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

absl::StatusOr<Place*> Membership::Renew(v1::Role role, uint32_t index,
                                         uint64_t incarnation,
                                         int64_t now_micros) {
  std::vector<Place>* places = Places(role);
  if (places == nullptr || index >= places->size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the job has ", servers_.size(), " servers and ", workers_.size(),
        " workers; there is no place ", index, " for role ", role));
  }
  Place& place = (*places)[index];
  if (place.incarnation != incarnation || !place.alive) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the lease of ", ShortName(place), " as incarnation ", incarnation,
        " is lost", place.alive ? " to a newer one" : "", "; register again"));
  }
  place.last_heartbeat_micros = now_micros;
  return &place;
}

std::vector<Place*> Membership::Expire(int64_t now_micros) {
  std::vector<Place*> lost;
  for (std::vector<Place>* places : {&servers_, &workers_}) {
    for (Place& place : *places) {
      if (!place.alive ||
          now_micros - place.last_heartbeat_micros <= lease_micros_) {
        continue;
      }
      place.alive = false;
      if (place.finished) continue;
      ++place.losses;
      lost.push_back(&place);
    }
  }
  return lost;
}

Place* Membership::Expel(v1::Role role, uint32_t index, int64_t pid) {
  std::vector<Place>* places = Places(role);
  if (places == nullptr || index >= places->size()) return nullptr;
  Place& place = (*places)[index];
  if (place.incarnation == 0 || place.holder.pid() != pid) return nullptr;
  place.alive = false;
  ++place.losses;
  return &place;
}

void Membership::ExpelProcess(v1::Role role, uint32_t index, int64_t pid) {
  const Place* const one = Expel(role, index, pid);
  if (one == nullptr) return;
  for (const Place& place : *Places(role)) {
    if (place.alive && place.holder.host() == one->holder.host()) {
      Expel(role, place.index, pid);
    }
  }
}

void Membership::StartOver() {
  for (Place& worker : workers_) {
    worker.finished = false;
    worker.stop_bound = -1;
    worker.latest.clear_begun_step();
  }
}

void Membership::RenewAll(int64_t now_micros) {
  for (std::vector<Place>* places : {&servers_, &workers_}) {
    for (Place& place : *places) {
      if (place.alive) place.last_heartbeat_micros = now_micros;
    }
  }
}

void Membership::Save(v1::CoordinatorState* state) const {
  state->set_last_incarnation(last_incarnation_);
  for (const std::vector<Place>* places : {&servers_, &workers_}) {
    for (const Place& place : *places) {
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
}

void Membership::Restore(const v1::CoordinatorState& state,
                         int64_t now_micros) {
  last_incarnation_ = state.last_incarnation();
  for (const v1::PlaceState& saved : state.places()) {
    std::vector<Place>* places = Places(saved.holder().role());
    if (places == nullptr || saved.index() >= places->size()) continue;
    Place& place = (*places)[saved.index()];
    place.holder = saved.holder();
    place.incarnation = saved.incarnation();
    place.alive = saved.alive();
    place.finished = saved.finished();
    place.losses = saved.losses();
    place.last_heartbeat_micros = now_micros;
  }
}

bool Membership::ServersComplete() const {
  return std::all_of(servers_.begin(), servers_.end(),
                     [](const Place& server) { return server.alive; });
}

bool Membership::Complete() const {
  for (const std::vector<Place>* places : {&servers_, &workers_}) {
    for (const Place& place : *places) {
      if (!place.alive) return false;
    }
  }
  return true;
}

std::string Membership::Missing(bool declared) const {
  std::vector<std::string> names;
  for (const std::vector<Place>* places : {&servers_, &workers_}) {
    for (const Place& place : *places) {
      if (!place.alive) names.push_back(ShortName(place));
    }
  }
  if (!declared) names.push_back("the model");
  return NameList(names);
}

}  // namespace tributary
