// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/members/lost_places.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/core/members/name_list.h"

namespace tributary {
namespace {

double SecondsSince(int64_t micros, int64_t now_micros) {
  return static_cast<double>(now_micros - micros) / 1e6;
}

}  // namespace

void LostPlaces::Add(const Place& place, int64_t step, int64_t now_micros) {
  places_[{place.role, place.index}] = {now_micros, step, place.Name()};
}

bool LostPlaces::Remove(const Place& place) {
  if (places_.erase({place.role, place.index}) == 0) return false;
  if (place.role == v1::ROLE_WORKER) adopters_.erase(place.index);
  return true;
}

std::string LostPlaces::EmptyFor(int64_t timeout_micros,
                                 int64_t now_micros) const {
  for (const auto& [key, loss] : places_) {
    if (now_micros - loss.since_micros < timeout_micros) continue;
    return absl::StrFormat(
        "%s was lost, last heard at step %d, and nobody has taken its place "
        "for %.1f s",
        loss.name, loss.step, SecondsSince(loss.since_micros, now_micros));
  }
  return "";
}

std::string LostPlaces::WaitsFor(int64_t now_micros) const {
  std::vector<std::string> waits;
  for (const auto& [key, loss] : places_) {
    waits.push_back(absl::StrFormat(
        "waiting for a process in the place of %s, lost %.1f s ago, "
        "last heard at step %d",
        loss.name, SecondsSince(loss.since_micros, now_micros), loss.step));
  }
  return NameList(waits, "; ");
}

std::optional<int64_t> LostPlaces::SinceMicros() const {
  std::optional<int64_t> first;
  for (const auto& [key, loss] : places_) {
    first = std::min(first.value_or(loss.since_micros), loss.since_micros);
  }
  return first;
}

void LostPlaces::Adopt(const Membership& membership,
                       std::vector<std::string>* notices) {
  for (const auto& [key, loss] : places_) {
    const auto& [role, rank] = key;
    if (role != v1::ROLE_WORKER) continue;
    const auto held = adopters_.find(rank);
    if (held != adopters_.end() && membership.workers()[held->second].alive) {
      continue;
    }
    // Counts ranks by host and pid: in containers all processes may have the
    // same pid.
    const auto process_of = [](const Place& worker) {
      return std::make_pair(worker.holder.host(), worker.holder.pid());
    };
    std::map<std::pair<std::string, int64_t>, int> ranks_of;
    for (const Place& worker : membership.workers()) {
      if (worker.alive) ++ranks_of[process_of(worker)];
    }
    const Place* fewest = nullptr;
    for (const Place& worker : membership.workers()) {
      if (worker.alive &&
          (fewest == nullptr ||
           ranks_of[process_of(worker)] < ranks_of[process_of(*fewest)])) {
        fewest = &worker;
      }
    }
    if (fewest == nullptr) continue;  // no worker left; a timeout ends the job
    adopters_[rank] = fewest->index;
    notices->push_back(absl::StrCat(fewest->Name(), " takes over rank ", rank));
  }
}

std::vector<uint32_t> LostPlaces::AdoptedBy(uint32_t worker) const {
  std::vector<uint32_t> ranks;
  for (const auto& [rank, adopter] : adopters_) {
    if (adopter == worker) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace tributary
