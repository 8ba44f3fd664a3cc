// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
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

  // Delivers nothing from one process to the other until `until_micros`.
  void Cut(const Process* from, const Process* to, int64_t until_micros) {
    cuts_[{from->pid(), to->pid()}] = until_micros;
  }
  void HealAll() { cuts_.clear(); }

  // `what` must live for ever. Idle calls do not count as progress
  // (World::Kind).
  template <typename T>
  void Call(Process* from, const std::string& to, const char* what,
            World::Kind kind, int64_t timeout_micros,
            std::function<void(Process&, Reply<T>)> serve, Reply<T> done) {
    Start(
        from, to, what, kind, timeout_micros,
        [serve = std::move(serve)](Process& server, Reply<std::any> reply) {
          serve(server, [reply = std::move(reply)](absl::StatusOr<T> answer) {
            if (!answer.ok()) return reply(answer.status());
            reply(std::any(*std::move(answer)));
          });
        },
        [done = std::move(done)](absl::StatusOr<std::any> answer) {
          if (!answer.ok()) return done(answer.status());
          done(std::any_cast<T>(*std::move(answer)));
        });
  }
  // Calls a method of the process, which has the type Server.
  template <typename Server, typename Request, typename T>
  void Call(Process* from, const std::string& to, const char* what,
            World::Kind kind, int64_t timeout_micros,
            void (Server::*method)(const Request&, Reply<T>),
            const Request& request, std::type_identity_t<Reply<T>> done) {
    Call<T>(
        from, to, what, kind, timeout_micros,
        [method, request](Process& server, Reply<T> reply) {
          (static_cast<Server&>(server).*method)(request, std::move(reply));
        },
        std::move(done));
  }

  // True when a caller still waits although no message of its call is in
  // transit and no process is serving it. Only its deadline will end it.
  bool AnyCallLost() const;

  // Stops checking that calls are answered.
  void Close() { closing_ = true; }

 private:
  using Serve = std::function<void(Process&, Reply<std::any>)>;
  struct OpenCall;
  using OpenCallPtr = std::shared_ptr<OpenCall>;
  class Ticket;

  enum class Fate { kArrives, kBreaks, kVanishes };
  // Draws what happens to a message.
  Fate DrawFate(const Process* from, const Process* to, const char* what);
  int64_t DrawDelay();
  Process* Find(const std::string& address) const;
  void Start(Process* from, const std::string& to, const char* what,
             World::Kind kind, int64_t timeout_micros, Serve serve,
             Reply<std::any> done);
  void SendRequest(const OpenCallPtr& call);
  void Arrive(const OpenCallPtr& call, Process* server);
  void SendAnswer(const OpenCallPtr& call, const Process* server,
                  absl::StatusOr<std::any> answer);
  // Breaks the connection and tells the caller.
  void Break(const OpenCallPtr& call);
  // Lets a message of the call arrive after `micros`.
  void Move(const OpenCallPtr& call, int64_t micros, Process* owner,
            std::function<void()> then);
  void Finish(const OpenCallPtr& call, absl::StatusOr<std::any> answer);

  World* const world_;
  Adversity adversity_;
  FaultCounts faults_;
  bool closing_ = false;
  std::map<std::string, Process*> listeners_;
  std::map<std::pair<int64_t, int64_t>, int64_t> cuts_;  // by pid
  std::set<OpenCallPtr> open_;
};

}  // namespace tributary::simulation
