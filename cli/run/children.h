#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/run/child_process.h"
#include "cli/run/restart_budget.h"

namespace tributary {

// The servers and workers of a run, or what has launched them elsewhere.
class Children {
 public:
  explicit Children(int max_restarts, const Clock* clock = &Clock::Real())
      : clock_(clock), budget_(max_restarts) {}

  absl::Status Start(ChildProcess::Options options);

  // Asks of each that has ended without success, with its Obituary, what it
  // means. One that shall be replaced is started again with the command it had,
  // as soon as and as long as the RestartBudget says; one that is not missed is
  // forgotten. The error says what could not be started again, and why.
  enum class Loss { kFatal, kReplace, kNotMissed };
  using Judge = std::function<Loss(const ChildProcess& child,
                                   const std::string& obituary)>;
  absl::Status Tend(const Judge& judge);

  // Kills each that still runs and of which `lost` is true, once.
  void KillIf(const std::function<bool(const ChildProcess&)>& lost);

  // Once Tend has found one whose end is fatal, what to say of the first child
  // that has ended without success; killed ones come first, as the others may
  // have failed because of them. Empty: none is, or none that was judged.
  std::string FirstFailure();
  // The same for killed ones alone.
  std::string FirstKilled();

  // Waits until all have ended by themselves; false after `timeout`.
  bool WaitForAll(absl::Duration timeout);

 private:
  absl::Status StartAgain(std::unique_ptr<ChildProcess>* child);

  const Clock* const clock_;
  std::vector<std::unique_ptr<ChildProcess>> children_;
  RestartBudget budget_;
  std::map<std::string, int64_t> due_micros_;  // of the next start, by name
  std::set<pid_t> killed_;
  bool failed_ = false;  // one has ended and is not replaced
};

}  // namespace tributary
