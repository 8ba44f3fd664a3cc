#include "worker/trainer/plan_is_over.h"

#include "common/job/job_options.h"

namespace tributary {

bool PlanIsOver(Member& member, uint64_t epoch, const absl::Status& status) {
  if (member.WaitForPlanAfter(epoch, absl::ZeroDuration()).ok()) return true;
  const v1::JobSpec& job = member.job();
  // Ranks of one process are threads: they are lost together, or not at all.
  const bool in_group =
      HasGroups(job) && !job.strategy().has_data_parallel() &&
      (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
       absl::IsCancelled(status) || absl::IsAborted(status));
  if (in_group) member.BreakGroup(epoch, status);
  if (in_group || absl::IsUnavailable(status) || absl::IsCancelled(status)) {
    // The coordinator knows a lost rank once its lease is over.
    return member.WaitForNews(epoch, 2 * member.lease()).ok();
  }
  // Whoever says so has the new plan: so has the coordinator. And whoever is
  // waited for in vain may be known to be lost.
  if (absl::IsFailedPrecondition(status) || absl::IsDeadlineExceeded(status)) {
    return member.WaitForNews(epoch, absl::ZeroDuration()).ok();
  }
  return false;
}

}  // namespace tributary
