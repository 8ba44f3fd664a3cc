// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// Decides what a server does next, from its first plan to the end of the job. A
// plain object without waits: the caller does what next() says and reports the
// result.
class ServingLife {
 public:
  enum class Next {
    kGetPlan,           // get one of wanted_epoch() or later; then OnPlan
    kStart,             // restore plan() and serve it; then OnStarted
    kServe,             // serve plan() until OnNews
    kReportUnreadable,  // report status(), wait for another plan; then OnNews
    kEnd,               // end with status()
  };

  Next next() const { return next_; }
  uint64_t wanted_epoch() const { return plan_.epoch() + 1; }
  const v1::Plan& plan() const { return plan_; }
  // kReportUnreadable: why the plan's checkpoint cannot be read. kEnd: OK when
  // the job is done.
  const absl::Status& status() const { return status_; }

  // An error ends the server.
  void OnPlan(absl::StatusOr<v1::Plan> plan);
  // An error marked by Unreadable (common/checkpoint/restore.h) is reported;
  // another one ends the server.
  void OnStarted(absl::Status started);
  // News after plan() began, as from MemberState::NewsAfter. `fatal`: why the
  // job cannot continue; OK: it can.
  void OnNews(const absl::Status& news,
              const absl::Status& fatal = absl::OkStatus());

 private:
  void End(absl::Status status);

  Next next_ = Next::kGetPlan;
  v1::Plan plan_;  // the newest
  absl::Status status_;
};

}  // namespace tributary
