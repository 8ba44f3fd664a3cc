#include "worker/trainer/plan_is_over.h"

#include "common/job/job_options.h"

namespace tributary {

bool PlanIsOver(Member& member, uint64_t epoch, const absl::Status& status) {
  if (member.WaitForPlanAfter(epoch, absl::ZeroDuration()).ok()) return true;
  const v1::JobSpec& job = member.job();
  // The ranks of a data-parallel job are threads of one process, which are lost
  // together.
  const bool in_group =
      HasGroups(job) && !job.strategy().has_data_parallel() &&
      (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
       absl::IsCancelled(status) || absl::IsAborted(status));
  if (in_group) member.BreakGroup(epoch, status);
  if (in_group || absl::IsUnavailable(status) || absl::IsCancelled(status)) {
    // The coordinator knows of a lost rank once its lease has expired.
    return member.WaitForNews(epoch, 2 * member.lease()).ok();
  }
  // A server that refuses the plan's epoch knows the new plan, and so does the
  // coordinator. After a timeout the coordinator may already know of the lost
  // rank.
  if (absl::IsFailedPrecondition(status) || absl::IsDeadlineExceeded(status)) {
    return member.WaitForNews(epoch, absl::ZeroDuration()).ok();
  }
  return false;
}

}  // namespace tributary
