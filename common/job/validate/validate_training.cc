// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/job/job_options.h"
#include "common/job/learning_rate_schedule.h"
#include "common/job/validate/validate.h"
#include "common/optimizer/optimizer.h"
#include "common/status/status_macros.h"
#include "common/trace/trace_event.h"

namespace tributary {
namespace {

absl::Status ValidateWarmup(const Places& places, const std::string& path,
                            int64_t warmup, bool has_total, int64_t total,
                            const std::string& total_name) {
  if (!has_total || warmup < total) return absl::OkStatus();
  return places.Error(path, path, " must be below ", total_name, ", ", total,
                      ", got ", warmup);
}

// `total` and `eta_min` have no meaning for a rate that does not decay to an
// end.
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

absl::Status ValidateOptimizer(const Places& places, const std::string& path,
                               const v1::OptimizerSpec& optimizer) {
  const std::string name = OptimizerName(optimizer);
  if (name.empty()) return absl::OkStatus();
  const OptimizerFault fault =
      FindOptimizerKind(name)->check(OptimizerOptionsOf(optimizer));
  if (fault.field == nullptr) return absl::OkStatus();
  const std::string field = absl::StrCat(path, ".", name, ".", fault.field);
  return places.Error(field, field, " ", fault.text);
}

namespace {

absl::Status ValidateClassWeights(const Places& places,
                                  const v1::CrossEntropySpec& loss) {
  const std::string path = "training.loss.cross_entropy";
  const auto& weights = loss.class_weights();
  if (weights.empty()) return absl::OkStatus();
  if (loss.balanced()) {
    return places.Error(path + ".balanced", path,
                        " takes either balanced or class_weights");
  }
  const bool any = std::any_of(weights.begin(), weights.end(),
                               [](double weight) { return weight > 0; });
  if (any) return absl::OkStatus();
  return places.Error(path + ".class_weights", path,
                      ".class_weights wants at least one above 0");
}

}  // namespace

absl::Status ValidateTraining(const Places& places, const v1::JobSpec& job) {
  TRIBUTARY_RETURN_IF_ERROR(
      ValidateClassWeights(places, job.training().loss().cross_entropy()));
  TRIBUTARY_RETURN_IF_ERROR(ValidateOptimizer(places, "training.optimizer",
                                              job.training().optimizer()));
  TRIBUTARY_RETURN_IF_ERROR(ValidateParameterGroups(places, job));
  const v1::ScheduleSpec& schedule = job.training().learning_rate_schedule();
  TRIBUTARY_RETURN_IF_ERROR(ValidateSchedule(
      places, job.training().has_steps()
                  ? WithLength(schedule, job.training().steps())
                  : schedule));
  const v1::DataSpec& data = job.data();
  const DeviceMesh mesh = StrategyOf(job).mesh();
  if (data.has_global_batch_size() && data.global_batch_size() < mesh.data) {
    return places.Error(
        "data.global_batch_size",
        "data.global_batch_size must be at least the number of ",
        mesh.model_size() == 1 ? "workers, " : "replicas, ", mesh.data,
        ", got ", data.global_batch_size());
  }
  return absl::OkStatus();
}

namespace {

// Clipping, trust ratios and skipping need a step's whole gradient.
absl::Status ValidateWholeGradient(const Places& places, const v1::JobSpec& job,
                                   absl::string_view sync) {
  const v1::TrainingSpec& training = job.training();
  const std::string path = "training.";
  if (training.clip_norm() > 0) {
    return places.Error(path + "clip_norm", path,
                        "clip_norm wants sync bsp, where a step's gradient is "
                        "applied as one; the job says ",
                        sync);
  }
  if (NeedsWholeTensors(training.optimizer())) {
    const std::string field =
        absl::StrCat(path, "optimizer.", OptimizerName(training.optimizer()));
    return places.Error(field, field,
                        " wants sync bsp, where a step's "
                        "gradient is applied as one; the job says ",
                        sync);
  }
  if (training.nonfinite() == v1::NON_FINITE_SKIP) {
    return places.Error(path + "nonfinite", path,
                        "nonfinite: skip wants sync bsp, where a step's "
                        "gradient is applied as one; the job says ",
                        sync);
  }
  return absl::OkStatus();
}

// A delay needs every step of every rank, and its reports are of the step
// before.
absl::Status ValidateDelay(const Places& places, const v1::JobSpec& job,
                           const std::string& field) {
  const v1::BspSpec& bsp = job.strategy().parameter_server().sync().bsp();
  if (bsp.backup_workers() > 0) {
    return places.Error(field, field, " wants backup_workers: 0, got ",
                        bsp.backup_workers());
  }
  if (job.training().nonfinite() == v1::NON_FINITE_SKIP) {
    return places.Error(field, field,
                        " cannot be combined with nonfinite: skip, which tells "
                        "a rank at once that its step changed nothing");
  }
  const v1::EvaluationSpec& evaluation = job.evaluation();
  if (job.has_program() &&
      (evaluation.keep_best() || evaluation.stop_after() > 0)) {
    return places.Error(field, field,
                        " cannot be combined with a program's evaluations that "
                        "decide: they are of the weights of one step before");
  }
  return absl::OkStatus();
}

absl::Status ValidateSync(const Places& places, const v1::JobSpec& job) {
  const std::string path = "strategy.parameter_server.sync";
  const v1::SyncSpec& sync = job.strategy().parameter_server().sync();
  const int workers = job.cluster().workers();
  if (sync.bsp().backup_workers() >= workers) {
    const std::string field = path + ".bsp.backup_workers";
    return places.Error(field, field, " must be below the number of workers, ",
                        workers, ", got ", sync.bsp().backup_workers());
  }
  if (sync.bsp().delay() > 0) {
    TRIBUTARY_RETURN_IF_ERROR(ValidateDelay(places, job, path + ".bsp.delay"));
  }
  if (sync.has_local_sgd()) {
    const v1::OuterSpec& outer = sync.local_sgd().outer();
    if (outer.nesterov() && outer.momentum() <= 0) {
      const std::string field = path + ".local_sgd.outer.nesterov";
      return places.Error(field, field, " wants momentum above 0");
    }
    const int64_t every = job.checkpoint().every_steps();
    if (every % sync.local_sgd().period() != 0) {
      return places.Error("checkpoint.every_steps",
                          "checkpoint.every_steps must be a multiple of the "
                          "period of local_sgd, ",
                          sync.local_sgd().period(), ", got ", every);
    }
  }
  const SyncTraits traits = SyncTraitsOf(job);
  return traits.mode == ApplyMode::kSeparate || traits.updates_locally
             ? ValidateWholeGradient(places, job, traits.name)
             : absl::OkStatus();
}

// A step's timeout must allow a lost member's lease to expire and another
// process to take its place within one more lease.
absl::Status ValidateTimeouts(const Places& places, const v1::JobSpec& job) {
  const double lease = job.cluster().lease_seconds();
  const Strategy strategy = StrategyOf(job);
  const double timeout = strategy.timeout_seconds;
  if (timeout >= 2 * lease) return absl::OkStatus();
  const std::string field = absl::StrCat(
      "strategy.", strategy.name(),
      strategy.uses_servers() ? ".sync_timeout_seconds" : ".timeout_seconds");
  // Names the line of the field that the file sets.
  const std::string line = places.Has(field) ? field : "cluster.lease_seconds";
  return places.Error(line, field,
                      " must be at least twice cluster.lease_seconds, ", lease,
                      ", got ", timeout);
}

absl::Status ValidateTrace(const Places& places, const v1::JobSpec& job) {
  if (!job.has_trace()) return absl::OkStatus();
  const int64_t first = job.trace().first_step();
  const int64_t last = job.trace().last_step();
  if (last >= first && last - first < kMaxTracedSteps) return absl::OkStatus();
  return places.Error("trace.last_step", "trace.last_step",
                      " must be from first_step, ", first, ", to ",
                      first + kMaxTracedSteps - 1, ", got ", last);
}

absl::Status ValidateCluster(const Places& places, const v1::JobSpec& job) {
  const Strategy strategy = StrategyOf(job);
  if (strategy.uses_servers()) {
    if (job.cluster().servers() > 0) return absl::OkStatus();
    // A job that was resolved without servers has 0 of them in its file.
    constexpr char kStrategy[] = "strategy.parameter_server";
    if (places.Find(kStrategy).starts_with("--set") &&
        !places.Find("cluster.servers").starts_with("--set")) {
      return places.Error(kStrategy, kStrategy,
                          " wants at least 1 server, and cluster.servers is "
                          "0: add --servers 1");
    }
    return places.Error("cluster.servers", "cluster.servers",
                        " must be at least 1 and at most 256, got 0");
  }
  if (strategy.one_process() && strategy.mesh().model_size() > 1) {
    return places.Error("strategy.data_parallel", "strategy.data_parallel",
                        " wants whole models; tensor_parallel and "
                        "pipeline_parallel go with parameter_server or "
                        "all_reduce");
  }
  if (job.cluster().on_worker_loss() == v1::WORKER_LOSS_SHRINK) {
    return places.Error("cluster.on_worker_loss", "cluster.on_worker_loss",
                        ": shrink wants strategy parameter_server, got ",
                        strategy.name());
  }
  if (job.training().nonfinite() == v1::NON_FINITE_REJECT) {
    return places.Error("training.nonfinite", "training.nonfinite",
                        ": reject wants strategy parameter_server, got ",
                        strategy.name());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateGroupSync(const Places& places, const std::string& path,
                               const std::string& who, const v1::JobSpec& job) {
  const SyncTraits sync = SyncTraitsOf(job);
  if (sync.mode == ApplyMode::kSeparate || sync.updates_locally) {
    return places.Error(path, path, " wants sync bsp, where ", who,
                        " have the same weights; the job says ", sync.name);
  }
  if (sync.mode == ApplyMode::kBackup) {
    return places.Error(
        path, path,
        " wants every worker's gradient to count; the job has "
        "backup_workers: ",
        job.strategy().parameter_server().sync().bsp().backup_workers());
  }
  return absl::OkStatus();
}

absl::Status ValidateJob(const Places& places, const v1::JobSpec& job) {
  TRIBUTARY_RETURN_IF_ERROR(ValidateCluster(places, job));
  TRIBUTARY_RETURN_IF_ERROR(ValidateTimeouts(places, job));
  TRIBUTARY_RETURN_IF_ERROR(ValidateSync(places, job));
  TRIBUTARY_RETURN_IF_ERROR(ValidateWire(places, job));
  TRIBUTARY_RETURN_IF_ERROR(ValidateTrace(places, job));
  if (job.has_program()) return ValidateTraining(places, job);
  TRIBUTARY_RETURN_IF_ERROR(ValidateModel(places, job));
  TRIBUTARY_RETURN_IF_ERROR(ValidateTensorParallel(places, job));
  TRIBUTARY_RETURN_IF_ERROR(ValidatePipelineParallel(places, job));
  TRIBUTARY_RETURN_IF_ERROR(ValidateData(places, job));
  TRIBUTARY_RETURN_IF_ERROR(ValidateEvaluation(places, job));
  return ValidateTraining(places, job);
}

}  // namespace tributary
