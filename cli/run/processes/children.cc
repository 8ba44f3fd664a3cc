// SPDX-License-Identifier: Apache-2.0
#include "cli/run/processes/children.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/host/steady_waits.h"
#include "common/status/status_macros.h"

namespace tributary {

absl::Status Children::Start(ChildProcess::Options options) {
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> child,
                             ChildProcess::Start(std::move(options)));
  children_.push_back(std::move(child));
  return absl::OkStatus();
}

absl::Status Children::Tend(const Judge& judge) {
  for (size_t i = 0; i < children_.size();) {
    std::unique_ptr<ChildProcess>& child = children_[i];
    const int64_t now = clock_->NowMicros();
    const bool ended = child->Ended() && !child->succeeded();
    if (ended && due_micros_.count(child->name()) == 0) {
      const Loss loss = judge(*child, child->Obituary());
      if (loss == Loss::kNotMissed) {
        children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      const std::optional<int64_t> pause =
          loss == Loss::kReplace
              ? budget_.Ended(child->name(), now - child->started_micros())
              : std::nullopt;
      if (pause) {
        due_micros_[child->name()] = now + *pause;
      } else {
        failed_ = true;
      }
    }
    const auto due = due_micros_.find(child->name());
    if (due != due_micros_.end() && now >= due->second) {
      due_micros_.erase(due);
      TRIBUTARY_RETURN_IF_ERROR(StartAgain(&child));
    }
    ++i;
  }
  return absl::OkStatus();
}

absl::Status Children::StartAgain(std::unique_ptr<ChildProcess>* child) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> again =
      ChildProcess::Start((*child)->options());
  if (again.ok()) {
    *child = *std::move(again);
    return absl::OkStatus();
  }
  return absl::Status(
      again.status().code(),
      absl::StrCat((*child)->Obituary(), "; another ",
                   "cannot take its place: ", again.status().message()));
}

void Children::KillIf(const std::function<bool(const ChildProcess&)>& lost) {
  for (const auto& child : children_) {
    if (child->Ended() || child->kill_sent() || !lost(*child)) continue;
    child->Kill();
  }
}

std::string Children::FirstKilled(absl::string_view told) {
  std::string first;
  for (const auto& child : children_) {
    if (!child->Ended() || !child->killed() || child->kill_sent()) continue;
    const std::string obituary = child->Obituary();
    if (absl::StrContains(told, obituary)) return "";
    if (first.empty()) first = obituary;
  }
  return first;
}

std::string Children::FirstFailure() {
  if (!failed_) return "";
  if (std::string killed = FirstKilled(); !killed.empty()) return killed;
  return FirstUnsuccessful();
}

std::string Children::FirstUnsuccessful() {
  for (const auto& child : children_) {
    if (child->Ended() && !child->succeeded()) return child->Obituary();
  }
  return "";
}

std::string Children::FirstLeft(
    const std::function<bool(const ChildProcess&)>& wanted) {
  for (const auto& child : children_) {
    if (child->Ended() && child->succeeded() && wanted(*child)) {
      return child->Obituary();
    }
  }
  return "";
}

bool Children::AnyAlive(std::optional<v1::Role> role) {
  return std::any_of(children_.begin(), children_.end(),
                     [role](const std::unique_ptr<ChildProcess>& child) {
                       return (!role || child->options().role == *role) &&
                              !child->Ended();
                     });
}

bool Children::WaitForAll(absl::Duration timeout) {
  const absl::Duration deadline = SteadyNow() + timeout;
  while (true) {
    const bool all = !AnyAlive();
    if (all || SteadyNow() >= deadline) return all;
    absl::SleepFor(absl::Milliseconds(5));
  }
}

}  // namespace tributary
