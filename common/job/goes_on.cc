#include "common/job/goes_on.h"

#include "absl/strings/str_cat.h"
#include "common/job/job_options.h"

namespace tributary {
namespace {

bool HasLocalSgd(const v1::JobSpec& job) {
  return job.strategy().parameter_server().sync().has_local_sgd();
}

}  // namespace

absl::Status CheckGoesOn(const v1::JobSpec& job, const v1::JobSpec& before,
                         int64_t step, bool has_state) {
  const int64_t period = StepsAnUpdate(job);
  if (step % period != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "strategy.parameter_server.sync.local_sgd: goes on after a multiple of "
        "its period of ",
        period, " steps, the checkpoint is of step ", step,
        ": take another checkpoint, or another period"));
  }
  if (has_state && HasLocalSgd(job) != HasLocalSgd(before)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "strategy.parameter_server.sync: the checkpoint holds the state of ",
        HasLocalSgd(before) ? "local_sgd's outer optimizer"
                            : "the job's optimizer",
        ", which ",
        HasLocalSgd(job) ? "local_sgd's outer optimizer"
                         : "a job without local_sgd",
        " cannot go on with: take its weights alone, by tributary export and "
        "model.initialize_from"));
  }
  return absl::OkStatus();
}

}  // namespace tributary
