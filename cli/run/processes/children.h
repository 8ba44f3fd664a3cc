// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/run/processes/child_process.h"
#include "cli/run/restart_budget.h"

namespace tributary {

// The server and worker processes of a run, or their launchers when they run on
// other hosts.
class Children {
 public:
  explicit Children(int max_restarts, const Clock* clock = &Clock::Real())
      : clock_(clock), budget_(max_restarts) {}

  absl::Status Start(ChildProcess::Options options);

  // Asks `judge` about each child that has ended without success. kReplace:
  // starts the child again with its old command, when and as often as the
  // RestartBudget allows. kNotMissed: forgets the child. The error says which
  // child could not be started again, and why.
  enum class Loss { kFatal, kReplace, kNotMissed };
  using Judge = std::function<Loss(const ChildProcess& child,
                                   const std::string& obituary)>;
  absl::Status Tend(const Judge& judge);

  // Kills every running child for which `lost` is true, each child once.
  void KillIf(const std::function<bool(const ChildProcess&)>& lost);

  // Once Tend has found a fatal end: the message about the failed child;
  // otherwise empty. Prefers FirstKilled, because the other children may have
  // failed because of that child.
  std::string FirstFailure();
  // The message about the first child that was killed by something other than
  // KillIf; empty: there is none, or `told` contains the message about such a
  // child.
  std::string FirstKilled(absl::string_view told = "");

  // The message about the first child that has exited with code 0 and for which
  // `wanted` is true; empty: there is none.
  std::string FirstLeft(const std::function<bool(const ChildProcess&)>& wanted);
  // Whether any child, or any of this role, is still alive.
  bool AnyAlive(std::optional<v1::Role> role = std::nullopt);
  // The message about the first child that ended without success; empty: none.
  std::string FirstUnsuccessful();

  // Sets how often in a row a child may be replaced from now on.
  void set_max_restarts(int max_restarts) {
    budget_.set_max_restarts(max_restarts);
  }

  // Waits until all children have ended by themselves; false after `timeout`.
  bool WaitForAll(absl::Duration timeout);

 private:
  absl::Status StartAgain(std::unique_ptr<ChildProcess>* child);

  const Clock* const clock_;
  std::vector<std::unique_ptr<ChildProcess>> children_;
  RestartBudget budget_;
  std::map<std::string, int64_t> due_micros_;  // of the next start, by name
  bool failed_ = false;  // a child ended and is not replaced
};

}  // namespace tributary
