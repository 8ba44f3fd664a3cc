// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/cost_basis.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/run/ask_worker.h"
#include "common/cost/measurement.h"
#include "common/cost/strategies.h"
#include "common/host/small_file.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// This is long, because the worker reads the data first.
constexpr absl::Duration kComputeTimeout = absl::Minutes(5);
constexpr absl::Duration kLinkTimeout = absl::Minutes(1);
constexpr size_t kMostMeasured = 16 << 20;  // of a file: a line per worker

absl::StatusOr<ComputeMeasurement> MeasurementOfLines(
    const std::vector<std::string>& lines) {
  std::vector<ComputeMeasurement> measurements;
  for (const std::string& line : lines) {
    TRIBUTARY_ASSIGN_OR_RETURN(ComputeMeasurement one,
                               ComputeMeasurementOf(line));
    measurements.push_back(std::move(one));
  }
  return MeanOf(measurements);
}

absl::StatusOr<ComputeMeasurement> AskForCompute(
    const CostQuestions& questions) {
  // A worker on another host has another working directory.
  std::error_code error;
  const std::string job_path =
      std::filesystem::absolute(questions.job_path, error).string();
  std::vector<std::string> arguments = {"--measure-compute",
                                        error ? questions.job_path : job_path};
  for (const std::string& change : questions.overrides) {
    arguments.insert(arguments.end(), {"--set", change});
  }
  for (int64_t rows : questions.rows) {
    arguments.insert(arguments.end(), {"--measure-rows", absl::StrCat(rows)});
  }
  // Shared cores are slower when all of them compute, so all are measured at
  // once.
  const double cores = questions.cluster.shared_cores;
  const int workers = questions.rows.empty()
                          ? 1
                          : std::clamp(static_cast<int>(cores), 1,
                                       std::max(1, questions.workers));
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::vector<std::string> lines,
      AskWorkers(questions.near, workers, arguments, kComputeTimeout));
  return MeasurementOfLines(lines);
}

absl::StatusOr<ComputeMeasurement> ReadMeasurement(const std::string& path) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string text,
                             ReadSmallFile(path, kMostMeasured));
  const std::vector<std::string> lines =
      absl::StrSplit(text, '\n', absl::SkipEmpty());
  absl::StatusOr<ComputeMeasurement> measured = MeasurementOfLines(lines);
  if (measured.ok() && !measured->passes.empty()) return measured;
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": ",
      measured.ok() ? "it holds no times" : measured.status().message()));
}

absl::StatusOr<LinkMeasurement> AskForLink(const Host& near,
                                           const std::string& probe) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::vector<std::string> lines,
      AskWorkers(near, 1, {"--measure-links", probe}, kLinkTimeout));
  return LinkMeasurementOf(lines[0]);
}

absl::StatusOr<LinkMeasurement> AskForLink(const CostQuestions& questions) {
  if (!questions.measure_link) {
    return AskForLink(questions.near, questions.probe);
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::unique_ptr<LinkFarEnd> far_end,
      LinkFarEnd::Start(questions.far, questions.insecure_groups,
                        2 * kLinkTimeout));
  return AskForLink(questions.near, far_end->address());
}

absl::StatusOr<ModelCosts> CostsOf(const v1::JobSpec& job, const Shape& shape) {
  absl::StatusOr<ModelCosts> costs = CostsOfModel(job.model(), shape);
  if (costs.ok()) return costs;
  return absl::InvalidArgumentError(
      absl::StrCat("samples of shape [", absl::StrJoin(shape, ", "),
                   "]: ", costs.status().message()));
}

// Takes over the measured speeds; the others stay.
void TakeSpeed(const ComputeSpeed& measured, ComputeSpeed* compute) {
  compute->forward_flops = measured.forward_flops;
  compute->backward_flops = measured.backward_flops;
  compute->pass_seconds = measured.pass_seconds;
  compute->memory_bandwidth = measured.memory_bandwidth;
  compute->process_bytes = measured.process_bytes;
}

}  // namespace

absl::StatusOr<CostBasis> FindCostBasis(const v1::JobSpec& job,
                                        const CostQuestions& questions) {
  CostBasis basis{{}, questions.cluster, questions.compute};
  absl::StatusOr<Shape> shape = questions.sample_shape;
  if (shape->empty()) shape = SampleShapeOf(job);
  std::optional<ComputeMeasurement> measured;
  if (!questions.measurement.empty()) {
    TRIBUTARY_ASSIGN_OR_RETURN(measured,
                               ReadMeasurement(questions.measurement));
  } else if (!questions.rows.empty() || !shape.ok()) {
    TRIBUTARY_ASSIGN_OR_RETURN(measured, AskForCompute(questions));
  }
  if (measured) shape = measured->sample_shape;
  TRIBUTARY_ASSIGN_OR_RETURN(basis.model, CostsOf(job, *shape));
  if (measured && !measured->passes.empty()) {
    TakeSpeed(SpeedOf(*measured, basis.model), &basis.compute);
  }
  if (!questions.probe.empty() || questions.measure_link) {
    TRIBUTARY_ASSIGN_OR_RETURN(const LinkMeasurement link,
                               AskForLink(questions));
    basis.cluster.bandwidth = link.bandwidth;
    basis.cluster.latency = link.latency + ClusterShape::kSoftwareLatency;
  }
  return basis;
}

std::vector<int64_t> RowsToMeasure(const CostInputs& inputs) {
  const int64_t rows =
      std::max<int64_t>(1, inputs.global_rows / inputs.strategy.workers);
  return {std::max<int64_t>(1, rows / 4), rows};
}

CostInputs InputsFrom(const v1::JobSpec& job, const CostBasis& basis) {
  CostInputs inputs = InputsOfJob(job);
  inputs.model = &basis.model;
  inputs.cluster = basis.cluster;
  inputs.compute = basis.compute;
  return inputs;
}

}  // namespace tributary
