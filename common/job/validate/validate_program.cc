// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "common/job/validate/validate.h"

namespace tributary {
namespace {

// The first field that a program's job must not have; empty: there is none.
std::string ForeignField(const v1::JobSpec& job) {
  const v1::TrainingSpec& training = job.training();
  if (job.has_model()) return "model";
  if (job.has_data()) return "data";
  if (training.has_epochs()) return "training.epochs";
  if (training.has_loss()) return "training.loss";
  if (training.has_gradient_accumulation()) {
    return "training.gradient_accumulation";
  }
  if (training.precision() != v1::PRECISION_FLOAT32) {
    return "training.precision";
  }
  if (job.has_evaluation()) return "evaluation";
  return job.device() == v1::DEVICE_AUTO ? "" : "device";
}

// The strategy that a program's job cannot have; empty: there is none.
std::string ForeignStrategy(const v1::StrategySpec& strategy) {
  if (strategy.has_tensor_parallel()) return "strategy.tensor_parallel";
  if (strategy.has_pipeline_parallel()) return "strategy.pipeline_parallel";
  return strategy.has_data_parallel() ? "strategy.data_parallel" : "";
}

}  // namespace

absl::Status ValidateProgram(const Places& places, const v1::JobSpec& job) {
  if (const std::string field = ForeignField(job); !field.empty()) {
    return places.Error(field, field,
                        " is for a job with model and data; in this job a "
                        "program of its own decides it");
  }
  if (const std::string field = ForeignStrategy(job.strategy());
      !field.empty()) {
    return places.Error(field, field,
                        " is for a job with model and data; a program's job "
                        "takes parameter_server or all_reduce");
  }
  if (job.strategy().all_reduce().backend() == v1::COLLECTIVE_BACKEND_NCCL) {
    constexpr char kBackend[] = "strategy.all_reduce.backend";
    return places.Error(kBackend, kBackend,
                        ": the gradients of a program are exchanged through "
                        "host memory, where nccl cannot be used; use auto or "
                        "gloo");
  }
  if (job.cluster().on_worker_loss() == v1::WORKER_LOSS_SHRINK) {
    return places.Error("cluster.on_worker_loss", "cluster.on_worker_loss",
                        ": shrink is for a job with model and data, since no "
                        "process can run another one's program; use wait or "
                        "fail");
  }
  return absl::OkStatus();
}

}  // namespace tributary
