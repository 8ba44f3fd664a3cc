// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/hostile/attack_threads.h"

#include <signal.h>
#include <sys/resource.h>

#include <utility>

namespace tributary::testing {
namespace {

// Real attackers have machines of their own. Here they share the job's
// processors, and more than twenty of them would leave its processes no time to
// answer.
constexpr int kNice = 10;

}  // namespace

void AttackThreads::Begin(const std::string& name, Body body) {
  Attack& attack = *attacks_.emplace_back(std::make_unique<Attack>());
  attack.name = name;
  attack.thread = std::thread([&attack, body = std::move(body)] {
    // OpenSSL writes to connections that the other end has closed.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    setpriority(PRIO_PROCESS, 0, kNice);  // on Linux: of this thread
    body(&attack.count);
  });
}

void AttackThreads::End() {
  over_ = true;
  for (const auto& attack : attacks_) {
    if (attack->thread.joinable()) attack->thread.join();
  }
}

std::map<std::string, int64_t> AttackThreads::Counts() const {
  std::map<std::string, int64_t> counts;
  for (const auto& attack : attacks_) counts[attack->name] = attack->count;
  return counts;
}

}  // namespace tributary::testing
