#include "cli/children.h"

#include <algorithm>
#include <utility>

#include "common/status_macros.h"
#include "common/steady_waits.h"

namespace tributary {

absl::Status Children::Start(ChildProcess::Options options) {
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> child,
                             ChildProcess::Start(std::move(options)));
  children_.push_back(std::move(child));
  return absl::OkStatus();
}

absl::Status Children::Tend(int max_restarts, const Judge& judge) {
  for (size_t i = 0; i < children_.size();) {
    std::unique_ptr<ChildProcess>& child = children_[i];
    const bool ended = child->Ended() && !child->succeeded();
    const Loss loss = ended ? judge(*child, child->Obituary()) : Loss::kFatal;
    if (loss == Loss::kNotMissed) {
      children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    if (loss == Loss::kReplace && restarts_[child->name()] < max_restarts) {
      ++restarts_[child->name()];
      TRIBUTARY_ASSIGN_OR_RETURN(child, ChildProcess::Start(child->options()));
    } else if (ended) {
      failed_ = true;
    }
    ++i;
  }
  return absl::OkStatus();
}

void Children::KillIf(const std::function<bool(const ChildProcess&)>& lost) {
  for (const auto& child : children_) {
    if (child->Ended() || killed_.count(child->pid()) > 0 || !lost(*child)) {
      continue;
    }
    killed_.insert(child->pid());
    child->Kill();
  }
}

std::string Children::FirstKilled() {
  for (const auto& child : children_) {
    if (child->Ended() && child->killed()) return child->Obituary();
  }
  return "";
}

std::string Children::FirstFailure() {
  if (!failed_) return "";
  if (std::string killed = FirstKilled(); !killed.empty()) return killed;
  for (const auto& child : children_) {
    if (child->Ended() && !child->succeeded()) return child->Obituary();
  }
  return "";
}

bool Children::WaitForAll(absl::Duration timeout) {
  const absl::Duration deadline = SteadyNow() + timeout;
  while (true) {
    const bool all =
        std::all_of(children_.begin(), children_.end(),
                    [](const std::unique_ptr<ChildProcess>& child) {
                      return child->Ended();
                    });
    if (all || SteadyNow() >= deadline) return all;
    absl::SleepFor(absl::Milliseconds(5));
  }
}

}  // namespace tributary
