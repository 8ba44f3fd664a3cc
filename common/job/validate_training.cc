#include <string>

#include "absl/strings/str_cat.h"
#include "common/job/validate.h"
#include "common/status_macros.h"

namespace tributary {
namespace {

absl::Status ValidateOptimizer(const Places& places,
                               const v1::OptimizerSpec& optimizer) {
  const std::string path = "training.optimizer";
  if (optimizer.has_sgd() && optimizer.sgd().nesterov() &&
      (optimizer.sgd().momentum() <= 0 || optimizer.sgd().dampening() != 0)) {
    return places.Error(path + ".sgd.nesterov", path,
                        ".sgd.nesterov wants momentum above 0 and dampening 0");
  }
  if (optimizer.has_lamb() &&
      optimizer.lamb().clip_max() < optimizer.lamb().clip_min()) {
    return places.Error(path + ".lamb.clip_max", path,
                        ".lamb.clip_max must be at least clip_min");
  }
  return absl::OkStatus();
}

absl::Status ValidateWarmup(const Places& places, const std::string& path,
                            int64_t warmup, bool has_total, int64_t total,
                            const std::string& total_name) {
  if (!has_total || warmup < total) return absl::OkStatus();
  return places.Error(path, path, " must be below ", total_name, ", ", total,
                      ", got ", warmup);
}

// `total` and `eta_min` mean nothing where the rate has no end.
absl::Status ValidateEndless(const Places& places, const std::string& path,
                             const v1::WarmupScheduleSpec& spec) {
  if (!spec.has_total() && !spec.has_eta_min()) return absl::OkStatus();
  const std::string field =
      absl::StrCat(path, spec.has_total() ? ".total" : ".eta_min");
  return places.Error(field, field, " has no meaning; ", path,
                      " takes warmup alone");
}

absl::Status ValidateSchedule(const Places& places,
                              const v1::ScheduleSpec& schedule) {
  const std::string path = "training.learning_rate_schedule";
  switch (schedule.kind_case()) {
    case v1::ScheduleSpec::kMultistep: {
      const auto& milestones = schedule.multistep().milestones();
      for (int i = 1; i < milestones.size(); ++i) {
        if (milestones[i] > milestones[i - 1]) continue;
        const std::string item =
            absl::StrCat(path, ".multistep.milestones.", i);
        return places.Error(item, item, " must be above the one before, ",
                            milestones[i - 1], ", got ", milestones[i]);
      }
      return absl::OkStatus();
    }
    case v1::ScheduleSpec::kCosine:
      return ValidateWarmup(places, path + ".cosine.warmup_steps",
                            schedule.cosine().warmup_steps(),
                            schedule.cosine().has_t_max(),
                            schedule.cosine().t_max(), "t_max");
    case v1::ScheduleSpec::kWarmupCosine:
      return ValidateWarmup(places, path + ".warmup_cosine.warmup",
                            schedule.warmup_cosine().warmup(),
                            schedule.warmup_cosine().has_total(),
                            schedule.warmup_cosine().total(), "total");
    case v1::ScheduleSpec::kWarmupLinear:
      return ValidateWarmup(places, path + ".warmup_linear.warmup",
                            schedule.warmup_linear().warmup(),
                            schedule.warmup_linear().has_total(),
                            schedule.warmup_linear().total(), "total");
    case v1::ScheduleSpec::kWarmupConstant:
      return ValidateEndless(places, path + ".warmup_constant",
                             schedule.warmup_constant());
    case v1::ScheduleSpec::kInverseSqrt:
      return ValidateEndless(places, path + ".inverse_sqrt",
                             schedule.inverse_sqrt());
    default:
      return absl::OkStatus();
  }
}

}  // namespace

absl::Status ValidateTraining(const Places& places, const v1::JobSpec& job) {
  TRIBUTARY_RETURN_IF_ERROR(
      ValidateOptimizer(places, job.training().optimizer()));
  TRIBUTARY_RETURN_IF_ERROR(
      ValidateSchedule(places, job.training().learning_rate_schedule()));
  const v1::DataSpec& data = job.data();
  if (data.has_global_batch_size() &&
      data.global_batch_size() < job.cluster().workers()) {
    return places.Error("data.global_batch_size",
                        "data.global_batch_size must be at least the number of "
                        "workers, ",
                        job.cluster().workers(), ", got ",
                        data.global_batch_size());
  }
  return absl::OkStatus();
}

absl::Status ValidateJob(const Places& places, const v1::JobSpec& job) {
  TRIBUTARY_RETURN_IF_ERROR(ValidateModel(places, job));
  TRIBUTARY_RETURN_IF_ERROR(ValidateData(places, job));
  return ValidateTraining(places, job);
}

}  // namespace tributary
