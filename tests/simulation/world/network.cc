#include "tests/simulation/world/network.h"

#include <algorithm>

namespace tributary::simulation {
namespace {

constexpr int64_t kFastest = 50, kSlowest = 900;  // microseconds, undisturbed
// Longest time until a broken connection is noticed.
constexpr int64_t kNoticed = 5'000;
// Fraction of lost messages whose loss the sender's machine does not notice.
constexpr double kUnnoticed = 0.04;

}  // namespace

Process* Network::Find(const std::string& address) const {
  const auto found = listeners_.find(address);
  return found == listeners_.end() ? nullptr : found->second;
}

Network::Fate Network::DrawFate(const Process* from, const Process* to,
                                const char* what) {
  if (from != nullptr && to != nullptr && !cuts_.empty()) {
    const auto cut = cuts_.find({from->pid(), to->pid()});
    if (cut != cuts_.end() && cut->second > world_->now()) {
      ++faults_["message cut off"];
      return world_->random().Chance(0.5) ? Fate::kVanishes : Fate::kBreaks;
    }
  }
  if (!world_->random().Chance(adversity_.lose)) return Fate::kArrives;
  ++faults_["message lost"];
  TRIBUTARY_TRACE(*world_, "lost: ", what, " between ", from->name(), " and ",
                  to == nullptr ? "nobody" : to->name());
  return world_->random().Chance(kUnnoticed) ? Fate::kVanishes : Fate::kBreaks;
}

int64_t Network::DrawDelay() {
  Random& random = world_->random();
  if (!random.Chance(adversity_.slow)) {
    return random.Between(kFastest, kSlowest);
  }
  ++faults_["message delayed"];
  return random.Scale(kSlowest, std::max(kSlowest, adversity_.slow_micros));
}

void Network::Break(const std::shared_ptr<CallBase>& call) {
  if (call->done) return;
  ++call->moving;  // the notification
  world_->After(world_->random().Between(kFastest, kNoticed), call->from,
                call->kind, [this, call] {
                  --call->moving;
                  Settle(call,
                         absl::UnavailableError("the connection is broken"));
                });
}

void Network::Finish(const std::shared_ptr<CallBase>& call) {
  call->done = true;
  open_.erase(call);
}

void Network::Settle(const std::shared_ptr<CallBase>& call,
                     absl::Status status) {
  if (call->done) return;
  Finish(call);
  call->fail(std::move(status));
}

bool Network::AnyCallLost() const {
  return std::any_of(open_.begin(), open_.end(), [](const auto& call) {
    return call->from->alive() && call->moving == 0 && call->held == 0;
  });
}

}  // namespace tributary::simulation
