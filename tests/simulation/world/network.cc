// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/world/network.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tributary::simulation {
namespace {

constexpr int64_t kFastest = 50, kSlowest = 900;  // microseconds, undisturbed
// Longest time until a broken connection is noticed.
constexpr int64_t kNoticed = 5'000;
// Fraction of lost messages whose loss the sender's machine does not notice.
constexpr double kUnnoticed = 0.04;

}  // namespace

struct Network::OpenCall {
  Process* from;
  std::string to;
  const char* what;
  World::Kind kind;
  Serve serve;
  Reply<std::any> reply;
  bool done = false;
  int moving = 0;  // messages in transit
  int held = 0;    // copies being served
};

// One copy of a call, held by the process that serves it.
class Network::Ticket {
 public:
  Ticket(Network* network, OpenCallPtr call, Process* server)
      : network_(network), call_(std::move(call)), server_(server) {
    ++call_->held;
  }
  ~Ticket() {
    if (answered_ || network_->closing_) return;
    --call_->held;
    if (server_->alive()) {
      Violate(" let go of a call without an answer: ");
    } else {
      network_->Break(call_);
    }
  }
  void Answer(absl::StatusOr<std::any> answer) {
    if (answered_) return Violate(" answers a call twice: ");
    answered_ = true;
    --call_->held;
    if (server_->alive()) {
      network_->SendAnswer(call_, server_, std::move(answer));
    }
  }

 private:
  void Violate(const char* what) {
    network_->world_->Violate(absl::StrCat(server_->name(), what, call_->what,
                                           " from ", call_->from->name()));
  }

  Network* const network_;
  const OpenCallPtr call_;
  Process* const server_;
  bool answered_ = false;
};

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

void Network::Start(Process* from, const std::string& to, const char* what,
                    World::Kind kind, int64_t timeout_micros, Serve serve,
                    Reply<std::any> done) {
  auto call = std::make_shared<OpenCall>(
      OpenCall{from, to, what, kind, std::move(serve), std::move(done)});
  open_.insert(call);
  world_->After(timeout_micros, from, World::Kind::kIdle, [this, call] {
    Finish(call, absl::DeadlineExceededError("no answer in time"));
  });
  const bool twice = world_->random().Chance(adversity_.repeat);
  if (twice) ++faults_["message repeated"];
  SendRequest(call);
  if (twice) SendRequest(call);
}

void Network::Move(const OpenCallPtr& call, int64_t micros, Process* owner,
                   std::function<void()> then) {
  ++call->moving;
  world_->After(micros, owner, call->kind, [call, then = std::move(then)] {
    --call->moving;
    then();
  });
}

void Network::SendRequest(const OpenCallPtr& call) {
  Process* const server = Find(call->to);
  switch (DrawFate(call->from, server, call->what)) {
    case Fate::kVanishes:
      return;
    case Fate::kBreaks:
      return Break(call);
    case Fate::kArrives:
      Move(call, DrawDelay(), nullptr,
           [this, call, server] { Arrive(call, server); });
  }
}

// A connection reaches one process, never its successor at the same address.
void Network::Arrive(const OpenCallPtr& call, Process* server) {
  if (server == nullptr || !server->alive()) return Break(call);
  if (server->paused_until() > world_->now()) {
    return Move(call, server->paused_until() - world_->now(), nullptr,
                [this, call, server] { Arrive(call, server); });
  }
  auto ticket = std::make_shared<Ticket>(this, call, server);
  call->serve(*server, [ticket](absl::StatusOr<std::any> answer) {
    ticket->Answer(std::move(answer));
  });
}

void Network::SendAnswer(const OpenCallPtr& call, const Process* server,
                         absl::StatusOr<std::any> answer) {
  if (call->done) return;
  switch (DrawFate(server, call->from, call->what)) {
    case Fate::kVanishes:
      return;
    case Fate::kBreaks:
      return Break(call);
    case Fate::kArrives:
      Move(call, DrawDelay(), call->from,
           [this, call, answer = std::move(answer)] { Finish(call, answer); });
  }
}

void Network::Break(const OpenCallPtr& call) {
  if (call->done) return;
  Move(call, world_->random().Between(kFastest, kNoticed), call->from,
       [this, call] {
         Finish(call, absl::UnavailableError("the connection is broken"));
       });
}

void Network::Finish(const OpenCallPtr& call, absl::StatusOr<std::any> answer) {
  if (call->done) return;
  call->done = true;
  open_.erase(call);
  call->reply(std::move(answer));
}

bool Network::AnyCallLost() const {
  return std::any_of(open_.begin(), open_.end(), [](const auto& call) {
    return call->from->alive() && call->moving == 0 && call->held == 0;
  });
}

}  // namespace tributary::simulation
