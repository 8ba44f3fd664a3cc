// SPDX-License-Identifier: Apache-2.0
#include "server/service/serving_life.h"

#include <utility>

#include "common/base/mutation.h"
#include "common/checkpoint/restore.h"

namespace tributary {

void ServingLife::End(absl::Status status) {
  status_ = std::move(status);
  next_ = Next::kEnd;
}

void ServingLife::OnPlan(absl::StatusOr<v1::Plan> plan) {
  if (!plan.ok()) return End(plan.status());
  plan_ = *std::move(plan);
  next_ = Next::kStart;
}

void ServingLife::OnStarted(absl::Status started) {
  if (started.ok()) {
    next_ = Next::kServe;
  } else if (IsUnreadable(started)) {
    status_ = std::move(started);
    next_ = Next::kReportUnreadable;
  } else {
    End(std::move(started));
  }
}

void ServingLife::OnNews(const absl::Status& news, const absl::Status& fatal) {
  if (news.ok()) {
    if (!TRIBUTARY_MUTATED("newer-plan-ignored")) next_ = Next::kGetPlan;
  } else if (absl::IsCancelled(news)) {
    End(absl::OkStatus());
  } else if (!absl::IsDeadlineExceeded(news)) {
    End(news);
  } else if (!fatal.ok()) {
    End(fatal);
  }
}

}  // namespace tributary
