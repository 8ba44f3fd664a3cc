// SPDX-License-Identifier: Apache-2.0
#include "common/cost/measurement.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr double kMost = 1e18;
constexpr size_t kMostText = 1 << 20;  // bytes

// Reads numbers from a JSON text that may contain anything.
class Reader {
 public:
  // Does not copy JSON values, which may be nested as deeply as the text is
  // long.
  explicit Reader(const std::string& json)
      : json_(json.size() > kMostText
                  ? OrderedJson()
                  : OrderedJson::parse(json, nullptr,
                                       /*allow_exceptions=*/false)) {}

  absl::StatusOr<double> Number(const OrderedJson& object,
                                const char* key) const {
    if (!object.is_object() || !object.contains(key) ||
        !object[key].is_number()) {
      return absl::InvalidArgumentError(
          absl::StrCat("a measurement wants the number ", key));
    }
    const double number = object[key].get<double>();
    if (!(number >= 0) || number > kMost) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a measurement wants ", key, " from 0 to ", kMost, ", got ", number));
    }
    return number;
  }
  absl::StatusOr<const OrderedJson*> List(const char* key) const {
    if (!json_.is_object() || !json_.contains(key) || !json_[key].is_array()) {
      return absl::InvalidArgumentError(
          absl::StrCat("a measurement wants the list ", key));
    }
    return &json_[key];
  }
  const OrderedJson& json() const { return json_; }

 private:
  const OrderedJson json_;
};

// Fits seconds = fixed + rows * a_row to the smallest and the largest batch.
struct Line {
  double fixed = 0;
  double a_row = 0;
};
Line Fit(double rows, double seconds, double more_rows, double more_seconds) {
  Line line;
  if (more_rows > rows && more_seconds > seconds) {
    line.a_row = (more_seconds - seconds) / (more_rows - rows);
    line.fixed = seconds - rows * line.a_row;
  }
  if (line.a_row > 0 && line.fixed >= 0) return line;
  return {0, more_seconds / more_rows};
}

}  // namespace

std::string ToJson(const ComputeMeasurement& measurement) {
  OrderedJson passes = OrderedJson::array();
  for (const ComputeMeasurement::Pass& pass : measurement.passes) {
    passes.push_back({{"rows", pass.rows},
                      {"forward_seconds", pass.forward_seconds},
                      {"backward_seconds", pass.backward_seconds}});
  }
  return OrderedJson{{"sample_shape", measurement.sample_shape},
                     {"passes", passes},
                     {"update_seconds", measurement.update_seconds},
                     {"memory_bandwidth", measurement.memory_bandwidth},
                     {"process_bytes", measurement.process_bytes},
                     {"peak_bytes", measurement.peak_bytes}}
      .dump();
}

std::string ToJson(const LinkMeasurement& measurement) {
  return OrderedJson{{"bandwidth", measurement.bandwidth},
                     {"latency", measurement.latency}}
      .dump();
}

absl::StatusOr<ComputeMeasurement> ComputeMeasurementOf(
    const std::string& json) {
  const Reader reader(json);
  ComputeMeasurement out;
  TRIBUTARY_ASSIGN_OR_RETURN(const OrderedJson* const shape,
                             reader.List("sample_shape"));
  for (const OrderedJson& extent : *shape) {
    if (!extent.is_number_unsigned() ||
        extent.get<uint64_t>() > static_cast<uint64_t>(kMost)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a measurement wants whole numbers up to ", kMost,
                       " in sample_shape"));
    }
    out.sample_shape.push_back(extent.get<int64_t>());
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const OrderedJson* const passes,
                             reader.List("passes"));
  for (const OrderedJson& pass : *passes) {
    TRIBUTARY_ASSIGN_OR_RETURN(const double rows, reader.Number(pass, "rows"));
    TRIBUTARY_ASSIGN_OR_RETURN(const double forward,
                               reader.Number(pass, "forward_seconds"));
    TRIBUTARY_ASSIGN_OR_RETURN(const double backward,
                               reader.Number(pass, "backward_seconds"));
    out.passes.push_back({static_cast<int64_t>(rows), forward, backward});
  }
  TRIBUTARY_ASSIGN_OR_RETURN(out.update_seconds,
                             reader.Number(reader.json(), "update_seconds"));
  TRIBUTARY_ASSIGN_OR_RETURN(out.memory_bandwidth,
                             reader.Number(reader.json(), "memory_bandwidth"));
  TRIBUTARY_ASSIGN_OR_RETURN(const double process,
                             reader.Number(reader.json(), "process_bytes"));
  TRIBUTARY_ASSIGN_OR_RETURN(const double peak,
                             reader.Number(reader.json(), "peak_bytes"));
  out.process_bytes = static_cast<int64_t>(process);
  out.peak_bytes = static_cast<int64_t>(peak);
  return out;
}

absl::StatusOr<LinkMeasurement> LinkMeasurementOf(const std::string& json) {
  const Reader reader(json);
  LinkMeasurement out;
  TRIBUTARY_ASSIGN_OR_RETURN(out.bandwidth,
                             reader.Number(reader.json(), "bandwidth"));
  TRIBUTARY_ASSIGN_OR_RETURN(out.latency,
                             reader.Number(reader.json(), "latency"));
  if (!(out.bandwidth > 0)) {
    return absl::InvalidArgumentError(
        "a measurement wants a bandwidth above 0");
  }
  return out;
}

absl::StatusOr<ComputeMeasurement> MeanOf(
    const std::vector<ComputeMeasurement>& measurements) {
  if (measurements.empty()) {
    return absl::InvalidArgumentError("wanted at least one measurement");
  }
  ComputeMeasurement mean = measurements[0];
  for (size_t i = 1; i < measurements.size(); ++i) {
    const ComputeMeasurement& other = measurements[i];
    bool alike = other.sample_shape == mean.sample_shape &&
                 other.passes.size() == mean.passes.size();
    for (size_t p = 0; alike && p < mean.passes.size(); ++p) {
      alike = other.passes[p].rows == mean.passes[p].rows;
      mean.passes[p].forward_seconds += other.passes[p].forward_seconds;
      mean.passes[p].backward_seconds += other.passes[p].backward_seconds;
    }
    if (!alike) {
      return absl::InvalidArgumentError(
          "measurements side by side want the same samples and batch sizes");
    }
    mean.update_seconds += other.update_seconds;
    mean.memory_bandwidth += other.memory_bandwidth;
    mean.process_bytes = std::max(mean.process_bytes, other.process_bytes);
    mean.peak_bytes = std::max(mean.peak_bytes, other.peak_bytes);
  }
  const double count = static_cast<double>(measurements.size());
  for (ComputeMeasurement::Pass& pass : mean.passes) {
    pass.forward_seconds /= count;
    pass.backward_seconds /= count;
  }
  mean.update_seconds /= count;
  mean.memory_bandwidth /= count;
  return mean;
}

ComputeSpeed SpeedOf(const ComputeMeasurement& measurement,
                     const ModelCosts& model) {
  ComputeSpeed speed;
  speed.process_bytes = static_cast<double>(measurement.process_bytes);
  if (measurement.memory_bandwidth > 0) {
    speed.memory_bandwidth = measurement.memory_bandwidth;
  }
  if (measurement.passes.empty()) return speed;
  const ComputeMeasurement::Pass& few = measurement.passes.front();
  const ComputeMeasurement::Pass& many = measurement.passes.back();
  const double rows = static_cast<double>(std::max<int64_t>(few.rows, 1));
  const double more = static_cast<double>(std::max<int64_t>(many.rows, 1));
  const Line forward =
      Fit(rows, few.forward_seconds, more, many.forward_seconds);
  const Line backward =
      Fit(rows, few.backward_seconds, more, many.backward_seconds);
  if (forward.a_row > 0) {
    speed.forward_flops = model.forward_flops() / forward.a_row;
  }
  if (backward.a_row > 0) {
    speed.backward_flops = model.backward_flops() / backward.a_row;
  }
  speed.pass_seconds = forward.fixed + backward.fixed;
  return speed;
}

}  // namespace tributary
