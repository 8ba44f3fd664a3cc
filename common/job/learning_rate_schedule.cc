// SPDX-License-Identifier: Apache-2.0
#include "common/job/learning_rate_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// Checks that a schedule ends after its warm-up and has every length that At
// divides by.
absl::Status CheckLengths(const v1::ScheduleSpec& spec) {
  int64_t warmup = 0, total = 1;
  switch (spec.kind_case()) {
    case v1::ScheduleSpec::kStep:
      total = spec.step().step_size();
      break;
    case v1::ScheduleSpec::kCosine:
      warmup = spec.cosine().warmup_steps();
      total = spec.cosine().t_max();
      break;
    case v1::ScheduleSpec::kLinear:
      total = spec.linear().total_steps();
      break;
    case v1::ScheduleSpec::kWarmupCosine:
      warmup = spec.warmup_cosine().warmup();
      total = spec.warmup_cosine().total();
      break;
    case v1::ScheduleSpec::kWarmupLinear:
      warmup = spec.warmup_linear().warmup();
      total = spec.warmup_linear().total();
      break;
    default:
      break;
  }
  if (warmup >= 0 && warmup < total) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("learning_rate_schedule wants at least one step after its "
                   "warm-up of ",
                   warmup, " steps, got a schedule of ", total, " steps"));
}

// Rises from 0 at `first` to 1 at `last`.
double Progress(int64_t step, int64_t first, int64_t last) {
  return std::min(1.0, static_cast<double>(step - first) /
                           static_cast<double>(last - first));
}

}  // namespace

std::string OpenLength(const v1::ScheduleSpec& spec) {
  if (spec.has_cosine()) return spec.cosine().has_t_max() ? "" : "cosine.t_max";
  if (spec.has_warmup_cosine()) {
    return spec.warmup_cosine().has_total() ? "" : "warmup_cosine.total";
  }
  if (spec.has_warmup_linear()) {
    return spec.warmup_linear().has_total() ? "" : "warmup_linear.total";
  }
  return "";
}

v1::ScheduleSpec WithLength(v1::ScheduleSpec spec, int64_t total_steps) {
  if (spec.has_cosine()) {
    v1::CosineScheduleSpec* cosine = spec.mutable_cosine();
    if (!cosine->has_t_max()) cosine->set_t_max(total_steps);
  } else if (spec.has_warmup_cosine() || spec.has_warmup_linear()) {
    v1::WarmupScheduleSpec* warmup = spec.has_warmup_cosine()
                                         ? spec.mutable_warmup_cosine()
                                         : spec.mutable_warmup_linear();
    if (!warmup->has_total()) warmup->set_total(total_steps);
  }
  return spec;
}

absl::StatusOr<LearningRateSchedule> LearningRateSchedule::Create(
    const v1::ScheduleSpec& spec, double base_rate, int64_t total_steps) {
  v1::ScheduleSpec resolved = WithLength(spec, total_steps);
  TRIBUTARY_RETURN_IF_ERROR(CheckLengths(resolved));
  return LearningRateSchedule(std::move(resolved), base_rate);
}

double LearningRateSchedule::WarmUp(int64_t step, int64_t warmup) const {
  return base_rate_ * static_cast<double>(step + 1) /
         static_cast<double>(warmup);
}

double LearningRateSchedule::Cosine(double progress, double eta_min) const {
  return eta_min + (base_rate_ - eta_min) *
                       (1 + std::cos(std::numbers::pi * progress)) / 2;
}

double LearningRateSchedule::At(int64_t step) const {
  switch (spec_.kind_case()) {
    case v1::ScheduleSpec::kStep: {
      const int64_t drops = step / spec_.step().step_size();
      return base_rate_ *
             std::pow(spec_.step().gamma(), static_cast<double>(drops));
    }
    case v1::ScheduleSpec::kMultistep: {
      const auto& milestones = spec_.multistep().milestones();
      const auto passed = std::count_if(
          milestones.begin(), milestones.end(),
          [step](int64_t milestone) { return milestone <= step; });
      return base_rate_ *
             std::pow(spec_.multistep().gamma(), static_cast<double>(passed));
    }
    case v1::ScheduleSpec::kExponential:
      return base_rate_ *
             std::pow(spec_.exponential().gamma(), static_cast<double>(step));
    case v1::ScheduleSpec::kCosine: {
      const v1::CosineScheduleSpec& cosine = spec_.cosine();
      const int64_t warmup = cosine.warmup_steps();
      if (step < warmup) return WarmUp(step, warmup);
      return Cosine(Progress(step, warmup, cosine.t_max()), cosine.eta_min());
    }
    case v1::ScheduleSpec::kLinear: {
      const double start = spec_.linear().start_factor();
      return base_rate_ *
             (start +
              (1 - start) * Progress(step, 0, spec_.linear().total_steps()));
    }
    case v1::ScheduleSpec::kWarmupConstant: {
      const int64_t warmup = spec_.warmup_constant().warmup();
      return step < warmup ? WarmUp(step, warmup) : base_rate_;
    }
    case v1::ScheduleSpec::kWarmupCosine: {
      const v1::WarmupScheduleSpec& s = spec_.warmup_cosine();
      if (step < s.warmup()) return WarmUp(step, s.warmup());
      return Cosine(Progress(step, s.warmup(), s.total()), s.eta_min());
    }
    case v1::ScheduleSpec::kWarmupLinear: {
      const v1::WarmupScheduleSpec& s = spec_.warmup_linear();
      if (step < s.warmup()) return WarmUp(step, s.warmup());
      return s.eta_min() + (base_rate_ - s.eta_min()) *
                               (1 - Progress(step, s.warmup(), s.total()));
    }
    case v1::ScheduleSpec::kInverseSqrt: {
      const int64_t warmup = spec_.inverse_sqrt().warmup();
      if (step + 1 < warmup) return WarmUp(step, warmup);
      return base_rate_ * std::sqrt(static_cast<double>(warmup) /
                                    static_cast<double>(step + 1));
    }
    case v1::ScheduleSpec::kConstant:
    case v1::ScheduleSpec::KIND_NOT_SET:
      break;
  }
  return base_rate_;
}

}  // namespace tributary
