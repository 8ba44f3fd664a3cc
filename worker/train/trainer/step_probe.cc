// SPDX-License-Identifier: Apache-2.0
#include "worker/train/trainer/step_probe.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "common/wire/crc32c/crc32c.h"
#include "worker/rank/collective/device_fault.h"

namespace tributary {
namespace {

double Norm(const std::vector<float>& values) {
  double squares = 0;
  for (const float value : values) squares += double{value} * double{value};
  return std::sqrt(squares);
}

uint32_t Checksum(const std::vector<float>& values) {
  return ExtendCrc32c(0, values.data(), values.size() * sizeof(float));
}

}  // namespace

StepProbe::StepProbe(Options options,
                     std::unique_ptr<GradientSynchronizer> synchronizer)
    : options_(std::move(options)),
      synchronizer_(std::move(synchronizer)),
      file_(absl::StrCat(options_.folder, "/rank-", options_.rank, ".jsonl"),
            std::ios::app),
      tensors_(options_.model->parameters().size()) {}

absl::StatusOr<std::unique_ptr<StepProbe>> StepProbe::Create(
    Options options, std::unique_ptr<GradientSynchronizer> synchronizer) {
  std::unique_ptr<StepProbe> probe(
      new StepProbe(std::move(options), std::move(synchronizer)));
  if (!probe->file_) {
    return absl::UnavailableError(
        absl::StrCat("no file can be created in ", probe->options_.folder));
  }
  return probe;
}

absl::Status StepProbe::CopyOut(const float* values, int parameter) {
  const int64_t size = options_.model->parameters()[parameter].size();
  host_.resize(static_cast<size_t>(size));
  options_.ops->CopyOut(host_.data(), values, host_.size() * sizeof(float));
  return SynchronizeDevice(*options_.ops);
}

void StepProbe::BeginStep(int64_t step, uint64_t samples) {
  active_ = step + 1 >= options_.first_step && step + 1 <= options_.last_step;
  has_samples_ = samples > 0;
  synchronizer_->BeginStep(step, samples);
}

void StepProbe::GradientReady(int parameter) {
  if (active_ && has_samples_) {
    status_.Update(CopyOut(options_.model->gradient(parameter), parameter));
    tensors_[parameter].gradient_norm = Norm(host_);
    tensors_[parameter].gradient_crc = Checksum(host_);
  }
  synchronizer_->GradientReady(parameter);
}

absl::StatusOr<int64_t> StepProbe::FinishStep() {
  TRIBUTARY_ASSIGN_OR_RETURN(const int64_t finished,
                             synchronizer_->FinishStep());
  for (size_t p = 0; active_ && p < tensors_.size(); ++p) {
    const int parameter = static_cast<int>(p);
    status_.Update(CopyOut(options_.model->weight(parameter), parameter));
    tensors_[p].weight_crc = Checksum(host_);
  }
  TRIBUTARY_RETURN_IF_ERROR(status_);
  return finished;
}

void StepProbe::Report(const v1::StepReport& report) {
  if (!std::exchange(active_, false)) return;
  nlohmann::ordered_json line = {{"step", report.step()},
                                 {"rank", options_.rank},
                                 {"samples", nullptr},
                                 {"loss_sum", nullptr},
                                 {"tensors", nlohmann::json::array()}};
  if (report.samples() > 0) {
    line["samples"] = report.samples();
    line["loss_sum"] = report.loss_sum();
  }
  for (size_t p = 0; p < tensors_.size(); ++p) {
    nlohmann::ordered_json tensor = {
        {"name", options_.model->parameters()[p].name},
        {"gradient_norm", nullptr},
        {"gradient_crc32c", nullptr},
        {"weight_crc32c", tensors_[p].weight_crc}};
    if (has_samples_) {
      tensor["gradient_norm"] = tensors_[p].gradient_norm;
      tensor["gradient_crc32c"] = tensors_[p].gradient_crc;
    }
    line["tensors"].push_back(std::move(tensor));
  }
  file_ << line.dump() << std::endl;
}

}  // namespace tributary
