// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/cost_options.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cli/terminal/quantities.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

absl::Status Parse(const char* option, const std::string& text,
                   absl::StatusOr<double> (*parser)(absl::string_view),
                   double* out) {
  const absl::StatusOr<double> value = parser(text);
  if (!value.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": ", value.status().message()));
  }
  *out = *value;
  return absl::OkStatus();
}

absl::StatusOr<ClusterShape> ClusterOf(const CostOptions& options) {
  ClusterShape cluster;
  if (!options.bandwidth.empty()) {
    double rate = 0;
    TRIBUTARY_RETURN_IF_ERROR(
        Parse("--bandwidth", options.bandwidth, ParseRate, &rate));
    cluster.bandwidth = PayloadRate(rate);
  }
  TRIBUTARY_RETURN_IF_ERROR(
      Parse("--latency", options.latency, ParseSeconds, &cluster.latency));
  cluster.latency += ClusterShape::kSoftwareLatency;
  TRIBUTARY_RETURN_IF_ERROR(
      Parse("--burst", options.burst, ParseBytes, &cluster.burst_bytes));
  cluster.shared_cores = options.shared_cores;
  return cluster;
}

absl::StatusOr<ComputeSpeed> ComputeOf(const CostOptions& options) {
  ComputeSpeed compute;
  if (options.gflops > 0) {
    compute.forward_flops = compute.backward_flops = options.gflops * 1e9;
  }
  compute.cpu_seconds_per_byte = ComputeSpeed::kCpuSecondsPerByte;
  compute.cpu_seconds_per_message = ComputeSpeed::kCpuSecondsPerMessage;
  compute.process_bytes = ComputeSpeed::kProcessBytes;
  compute.server_process_bytes = ComputeSpeed::kProcessBytes;
  TRIBUTARY_RETURN_IF_ERROR(Parse("--memory-bandwidth",
                                  options.memory_bandwidth, ParseRate,
                                  &compute.memory_bandwidth));
  return compute;
}

}  // namespace

void AddCostOptions(CommandLine& command, CostOptions* options) {
  command.AddOption("--bandwidth", &options->bandwidth,
                    "of a link, each way: 1Gbit, 100MB");
  command.AddOption("--latency", &options->latency, "one way: 0.2ms")
      .ShowDefault();
  command
      .AddOption("--burst", &options->burst,
                 "bytes that an idle link lets through at once (tc tbf)")
      .ShowDefault();
  command.AddOption("--probe", &options->probe,
                    "measure the link to this HOST:PORT instead");
  command
      .AddOption("--compute", &options->gflops,
                 "GFLOP/s of a worker in forward and backward")
      .Positive();
  command
      .AddOption("--measurement", &options->measurement,
                 "what `tributary-worker --measure-compute` has printed, a\n"
                 "line of each that ran at once")
      .TypeName("FILE");
  command
      .AddOption("--memory-bandwidth", &options->memory_bandwidth,
                 "bytes a second of updates, where they are not measured")
      .ShowDefault();
  command
      .AddOption("--shared-cores", &options->shared_cores,
                 "all processes share so many cores of one machine")
      .Range(0.0, 4096.0);
  command.AddOption("--sample-shape", &options->sample_shape,
                    "of the data, as 28x28; default: the job or the data\n"
                    "tell it");
}

absl::StatusOr<CostQuestions> QuestionsOf(const CostOptions& options) {
  CostQuestions questions;
  questions.probe = options.probe;
  questions.measurement = options.measurement;
  TRIBUTARY_ASSIGN_OR_RETURN(questions.compute, ComputeOf(options));
  TRIBUTARY_ASSIGN_OR_RETURN(questions.cluster, ClusterOf(options));
  if (!options.sample_shape.empty()) {
    TRIBUTARY_ASSIGN_OR_RETURN(questions.sample_shape,
                               ParseShape(options.sample_shape));
  }
  return questions;
}

}  // namespace tributary
