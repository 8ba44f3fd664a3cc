#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/simulation/world/world.h"

namespace tributary::simulation {

// The faults that the network injects while it is not calm. Probabilities:
struct Adversity {
  double lose = 0;    // a message is lost; its sender may notice
  double repeat = 0;  // a message arrives twice
  double slow = 0;    // a message takes up to slow_micros
  int64_t slow_micros = 0;
  double damage = 0;  // a bit of a payload flips
};

// How often each fault has happened: a fault that never happened proves
// nothing.
using FaultCounts = std::map<std::string, int64_t>;

template <typename T>
using Reply = std::function<void(absl::StatusOr<T>)>;

// Unary calls between processes. A call or its answer may be lost, repeated,
// delayed and overtaken. The caller gets exactly one result: the first answer
// that arrives, Unavailable when the connection breaks, or DeadlineExceeded.
// The callee must answer each copy exactly once.
class Network {
 public:
  explicit Network(World* world) : world_(world) {}
  ~Network() { closing_ = true; }

  void set_adversity(const Adversity& adversity) { adversity_ = adversity; }
  const Adversity& adversity() const { return adversity_; }
  FaultCounts& faults() { return faults_; }
  // Draws whether a payload's bits flip on its way.
  bool Damages(const char* fault) {
    const bool damages = world_->random().Chance(adversity_.damage);
    if (damages) ++faults_[fault];
    return damages;
  }

  // From here on `address` reaches this process.
  void Listen(const std::string& address, Process* process) {
    listeners_[address] = process;
  }

  // Nothing is delivered from one process to the other until then.
  void Cut(const Process* from, const Process* to, int64_t until_micros) {
    cuts_[{from->pid(), to->pid()}] = until_micros;
  }
  void HealAll() { cuts_.clear(); }

  // `what` must live for ever. Idle calls do not count as progress
  // (World::Kind).
  template <typename T>
  void Call(Process* from, const std::string& to, const char* what,
            World::Kind kind, int64_t timeout_micros,
            std::function<void(Process&, Reply<T>)> serve, Reply<T> done);

  // True when a caller still waits although no message of its call is in
  // transit and no process is serving it. Only its deadline will end it.
  bool AnyCallLost() const;

  // Stops checking that calls are answered.
  void Close() { closing_ = true; }

 private:
  struct CallBase {
    Process* from = nullptr;
    std::string to;
    const char* what = "";
    World::Kind kind = World::Kind::kWork;
    bool done = false;
    int moving = 0;  // messages in transit
    int held = 0;    // copies being served
    std::function<void(absl::Status)> fail;
  };
  template <typename T>
  struct CallOf : CallBase {
    std::function<void(Process&, Reply<T>)> serve;
    Reply<T> reply;
  };
  template <typename T>
  class Ticket;

  enum class Fate { kArrives, kBreaks, kVanishes };
  // Draws what happens to a message.
  Fate DrawFate(const Process* from, const Process* to, const char* what);
  int64_t DrawDelay();
  Process* Find(const std::string& address) const;
  // The connection breaks, and the caller is told.
  void Break(const std::shared_ptr<CallBase>& call);
  void Finish(const std::shared_ptr<CallBase>& call);
  void Settle(const std::shared_ptr<CallBase>& call, absl::Status status);
  template <typename T>
  void SendRequest(const std::shared_ptr<CallOf<T>>& call);
  template <typename T>
  void Arrive(const std::shared_ptr<CallOf<T>>& call, Process* server);
  template <typename T>
  void SendAnswer(const std::shared_ptr<CallOf<T>>& call, const Process* server,
                  absl::StatusOr<T> answer);

  World* const world_;
  Adversity adversity_;
  FaultCounts faults_;
  bool closing_ = false;
  std::map<std::string, Process*> listeners_;
  std::map<std::pair<int64_t, int64_t>, int64_t> cuts_;  // by pid
  std::set<std::shared_ptr<CallBase>> open_;
};

// One copy of a call, held by the process that serves it.
template <typename T>
class Network::Ticket {
 public:
  Ticket(Network* network, std::shared_ptr<CallOf<T>> call, Process* server)
      : network_(network), call_(std::move(call)), server_(server) {
    ++call_->held;
  }
  ~Ticket() {
    if (answered_ || network_->closing_) return;
    --call_->held;
    if (server_->alive()) {
      network_->world_->Violate(absl::StrCat(
          server_->name(), " let go of a call without an answer: ", call_->what,
          " from ", call_->from->name()));
    } else {
      network_->Break(call_);
    }
  }
  void Answer(absl::StatusOr<T> answer) {
    if (answered_) {
      network_->world_->Violate(
          absl::StrCat(server_->name(), " answers a call twice: ", call_->what,
                       " from ", call_->from->name()));
      return;
    }
    answered_ = true;
    --call_->held;
    if (server_->alive()) {
      network_->SendAnswer(call_, server_, std::move(answer));
    }
  }

 private:
  Network* const network_;
  const std::shared_ptr<CallOf<T>> call_;
  Process* const server_;
  bool answered_ = false;
};

template <typename T>
void Network::Call(Process* from, const std::string& to, const char* what,
                   World::Kind kind, int64_t timeout_micros,
                   std::function<void(Process&, Reply<T>)> serve,
                   Reply<T> done) {
  auto call = std::make_shared<CallOf<T>>();
  call->from = from;
  call->to = to;
  call->what = what;
  call->kind = kind;
  call->serve = std::move(serve);
  call->reply = std::move(done);
  call->fail = [call = call.get()](absl::Status status) {
    call->reply(std::move(status));
  };
  open_.insert(call);
  world_->After(timeout_micros, from, World::Kind::kIdle, [this, call] {
    Settle(call, absl::DeadlineExceededError("no answer in time"));
  });
  const bool twice = world_->random().Chance(adversity_.repeat);
  if (twice) ++faults_["message repeated"];
  SendRequest(call);
  if (twice) SendRequest(call);
}

template <typename T>
void Network::SendRequest(const std::shared_ptr<CallOf<T>>& call) {
  Process* const server = Find(call->to);
  switch (DrawFate(call->from, server, call->what)) {
    case Fate::kVanishes:
      return;
    case Fate::kBreaks:
      return Break(call);
    case Fate::kArrives:
      break;
  }
  ++call->moving;
  world_->After(DrawDelay(), nullptr, call->kind, [this, call, server] {
    --call->moving;
    Arrive(call, server);
  });
}

// A connection reaches one process, never its successor at the same address.
template <typename T>
void Network::Arrive(const std::shared_ptr<CallOf<T>>& call, Process* server) {
  if (server == nullptr || !server->alive()) return Break(call);
  if (server->paused_until() > world_->now()) {
    ++call->moving;
    world_->After(server->paused_until() - world_->now(), nullptr, call->kind,
                  [this, call, server] {
                    --call->moving;
                    Arrive(call, server);
                  });
    return;
  }
  auto ticket = std::make_shared<Ticket<T>>(this, call, server);
  call->serve(*server, [ticket](absl::StatusOr<T> answer) {
    ticket->Answer(std::move(answer));
  });
}

template <typename T>
void Network::SendAnswer(const std::shared_ptr<CallOf<T>>& call,
                         const Process* server, absl::StatusOr<T> answer) {
  if (call->done) return;
  switch (DrawFate(server, call->from, call->what)) {
    case Fate::kVanishes:
      return;
    case Fate::kBreaks:
      return Break(call);
    case Fate::kArrives:
      break;
  }
  ++call->moving;
  world_->After(DrawDelay(), call->from, call->kind,
                [this, call, answer = std::move(answer)]() mutable {
                  --call->moving;
                  if (call->done) return;
                  Finish(call);
                  call->reply(std::move(answer));
                });
}

}  // namespace tributary::simulation
