// SPDX-License-Identifier: Apache-2.0
#include "coordinator/page/run_history.h"

#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/version.h"
#include "common/member/step_seconds.h"

namespace tributary {
namespace {

using Json = nlohmann::ordered_json;

// Five significant digits; more would not be seen on the page.
double Rounded(double value) {
  return std::strtod(absl::StrFormat("%.5g", value).c_str(), nullptr);
}

Json CurveJson(const StepCurve& curve) {
  Json points = Json::array();
  for (const StepCurve::Point& point : curve.Points()) {
    points.push_back({point.step, nullptr});
    if (point.value) points.back()[1] = Rounded(*point.value);
  }
  return points;
}

}  // namespace

void RunHistory::AddStep(const StepRecord& record) {
  absl::MutexLock lock(&mu_);
  if (record.lost_reports == 0 && record.loss) {
    loss_.Add(record.step, *record.loss);
  }
  newest_.push_back(record.seconds);
  if (newest_.size() > kMeanSteps) newest_.pop_front();
}

v1::StepsShown RunHistory::SaveSteps() const {
  absl::MutexLock lock(&mu_);
  v1::StepsShown shown;
  loss_.Save(&shown);
  for (const StepSeconds& step : newest_) {
    for (const StepSecondsField& field : kStepSeconds) {
      shown.add_seconds(step.*field.seconds);
    }
  }
  return shown;
}

void RunHistory::RestoreSteps(const v1::StepsShown& shown) {
  absl::MutexLock lock(&mu_);
  loss_.Restore(shown);
  newest_.clear();
  constexpr int kFields = static_cast<int>(std::size(kStepSeconds));
  for (int i = 0; i + kFields <= shown.seconds_size(); i += kFields) {
    StepSeconds& step = newest_.emplace_back();
    for (int f = 0; f < kFields; ++f) {
      step.*kStepSeconds[f].seconds = shown.seconds(i + f);
    }
  }
}

void RunHistory::AddEvaluation(const EvaluationRecord& record) {
  absl::MutexLock lock(&mu_);
  for (const auto& [name, value] : record.metrics) {
    const std::pair<std::string, std::string> key(record.set, name);
    if (evaluations_.count(key) == 0 && evaluations_.size() >= kMaxCurves) {
      continue;
    }
    evaluations_[key].Add(record.step, value);
  }
}

std::string RunHistory::ToJson(
    const google::protobuf::RepeatedPtrField<v1::JobEvent>& events) const {
  Json json;
  absl::MutexLock lock(&mu_);
  json["version"] = kVersion;
  json["steps_per_point"] = loss_.width();
  json["loss"] = CurveJson(loss_);
  json["evaluations"] = Json::array();
  for (const auto& [key, curve] : evaluations_) {
    json["evaluations"].push_back({{"set", key.first},
                                   {"metric", key.second},
                                   {"points", CurveJson(curve)}});
  }
  json["mean_of_steps"] = newest_.size();
  json["step_parts"] = Json::object();
  for (const StepSecondsField& field : kStepSeconds) {
    double sum = 0;
    for (const StepSeconds& step : newest_) sum += step.*field.seconds;
    if (newest_.empty()) continue;
    json["step_parts"][absl::StrCat(field.name, "_seconds")] =
        Rounded(sum / static_cast<double>(newest_.size()));
  }
  json["events"] = Json::array();
  for (const v1::JobEvent& event : events) {
    json["events"].push_back(
        {{"micros", event.micros()}, {"text", event.text()}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tributary
