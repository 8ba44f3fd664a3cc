// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/plan_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/terminal/format.h"
#include "cli/terminal/quantities.h"
#include "common/host/format_bytes.h"

namespace tributary {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMostBytes = 1e19;  // fits a uint64_t

std::string Bytes(double bytes) {
  return FormatBytes(static_cast<uint64_t>(std::clamp(bytes, 0.0, kMostBytes)));
}

std::string RateText(double bytes_per_second) {
  if (std::isinf(bytes_per_second)) return "unlimited";
  return absl::StrFormat("%.4g Mbit/s", bytes_per_second * 8e-6);
}

std::string FlopsText(double flops) {
  return std::isinf(flops) ? "unlimited"
                           : absl::StrFormat("%.3g GFLOP/s", flops * 1e-9);
}

// Aligns rows in columns; the first column is left-aligned.
std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line =
        absl::StrFormat("%-*s", static_cast<int>(widths[0]), row[0]);
    for (size_t i = 1; i < row.size(); ++i) {
      absl::StrAppend(
          &line, absl::StrFormat("  %*s", static_cast<int>(widths[i]), row[i]));
    }
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

std::vector<size_t> FastestFirst(const StrategyPlan& plan) {
  std::vector<size_t> order(plan.strategies.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return plan.strategies[a].prediction.step_seconds <
           plan.strategies[b].prediction.step_seconds;
  });
  return order;
}

// JSON has no infinity.
Json Number(double number) {
  return std::isfinite(number) ? Json(number) : Json(nullptr);
}

Json StrategyJson(const PredictedStrategy& predicted, double rows) {
  const Strategy& strategy = predicted.strategy;
  const Prediction& p = predicted.prediction;
  return {{"name", predicted.name},
          {"workers", strategy.workers},
          {"servers", strategy.uses_servers() ? strategy.servers : 0},
          {"tensor", strategy.tensor},
          {"stages", strategy.stages},
          {"micro_batches", strategy.micro_batches},
          {"step_seconds", p.step_seconds},
          {"compute_seconds", p.compute_seconds},
          {"exposed_seconds", p.exposed_seconds},
          {"optimizer_seconds", p.optimizer_seconds},
          {"waiting_seconds", p.waiting_seconds},
          {"samples_per_second",
           p.step_seconds > 0 ? Json(rows / p.step_seconds) : Json(nullptr)},
          {"bytes_sent_per_rank", p.bytes_sent_per_rank},
          {"bytes_per_step", p.bytes_per_step},
          {"worker_memory_bytes", p.worker_memory},
          {"server_memory_bytes", p.server_memory}};
}

double RowsAStep(const CostInputs& inputs) {
  return static_cast<double>(inputs.global_rows * inputs.accumulation);
}

// Says which strategy to choose over links, whether one process does better,
// and how many servers are useful.
std::string AdviceText(const StrategyPlan& plan) {
  std::string text;
  const auto seconds_of = [&plan](size_t i) {
    return plan.strategies[i].prediction.step_seconds;
  };
  if (plan.fastest_over_links) {
    const size_t best = *plan.fastest_over_links;
    absl::StrAppend(
        &text, "fastest over these links: ", plan.strategies[best].name, "\n");
    if (plan.fastest != best && seconds_of(plan.fastest) > 0) {
      absl::StrAppendFormat(
          &text, "one process is %.3g times as fast: %s needs no link\n",
          seconds_of(best) / seconds_of(plan.fastest),
          plan.strategies[plan.fastest].name);
    }
  } else {
    absl::StrAppend(&text, "fastest: ", plan.strategies[plan.fastest].name,
                    "\n");
  }
  absl::StrAppendFormat(&text,
                        "parameter_server runs best with %d %s: one more would "
                        "save less than 5%% of the step\n",
                        plan.best_servers,
                        plan.best_servers == 1 ? "server" : "servers");
  return text;
}

}  // namespace

std::string PlanText(const PlanReport& report) {
  const CostInputs& in = report.inputs;
  std::string text = absl::StrFormat(
      "%s: %d parameters (%s), %.0f samples a step, %d %s\n", report.job_name,
      report.parameter_elements,
      Bytes(static_cast<double>(report.parameter_elements) * sizeof(float)),
      RowsAStep(report.inputs), in.strategy.workers,
      in.strategy.workers == 1 ? "worker" : "workers");
  absl::StrAppend(&text, "compute ", FlopsText(in.compute.forward_flops),
                  " forward, ", FlopsText(in.compute.backward_flops),
                  " backward (", report.measured ? "measured" : "given",
                  "); links ", RateText(in.cluster.bandwidth), " of payload, ",
                  SecondsText(in.cluster.latency), "\n\n");
  std::vector<std::vector<std::string>> rows = {
      {"strategy", "step", "compute", "exposed", "optimizer", "waiting",
       "samples/s", "sent/rank", "sent/step", "worker", "server"}};
  for (size_t i : FastestFirst(report.plan)) {
    const PredictedStrategy& strategy = report.plan.strategies[i];
    const Prediction& p = strategy.prediction;
    rows.push_back(
        {strategy.name, SecondsText(p.step_seconds),
         SecondsText(p.compute_seconds), SecondsText(p.exposed_seconds),
         SecondsText(p.optimizer_seconds), SecondsText(p.waiting_seconds),
         p.step_seconds > 0
             ? FormatCount(RowsAStep(report.inputs) / p.step_seconds)
             : "-",
         Bytes(p.bytes_sent_per_rank), Bytes(p.bytes_per_step),
         Bytes(p.worker_memory),
         p.server_memory > 0 ? Bytes(p.server_memory) : "-"});
  }
  absl::StrAppend(&text, Table(rows), "\n", AdviceText(report.plan));
  for (const StrategyPlan::LeftOut& one : report.plan.left_out) {
    absl::StrAppend(&text, "left out: ", one.name, ": ", one.why, "\n");
  }
  return text;
}

std::string PlanJson(const PlanReport& report) {
  const CostInputs& in = report.inputs;
  Json strategies = Json::array();
  for (size_t i : FastestFirst(report.plan)) {
    strategies.push_back(
        StrategyJson(report.plan.strategies[i], RowsAStep(report.inputs)));
  }
  Json left_out = Json::array();
  for (const StrategyPlan::LeftOut& one : report.plan.left_out) {
    left_out.push_back({{"name", one.name}, {"why", one.why}});
  }
  const Json json = {
      {"job", report.job_name},
      {"parameters", report.parameter_elements},
      {"samples_per_step", RowsAStep(report.inputs)},
      {"workers", in.strategy.workers},
      {"bandwidth_bytes_per_second", Number(in.cluster.bandwidth)},
      {"latency_seconds", in.cluster.latency},
      {"forward_flops_per_second", Number(in.compute.forward_flops)},
      {"backward_flops_per_second", Number(in.compute.backward_flops)},
      {"pass_seconds", in.compute.pass_seconds},
      {"memory_bytes_per_second", Number(in.compute.memory_bandwidth)},
      {"measured", report.measured},
      {"fastest", report.plan.strategies[report.plan.fastest].name},
      {"fastest_over_links",
       report.plan.fastest_over_links
           ? Json(report.plan.strategies[*report.plan.fastest_over_links].name)
           : Json(nullptr)},
      {"best_servers", report.plan.best_servers},
      {"own", StrategyJson(report.own, RowsAStep(in))},
      {"strategies", strategies},
      {"left_out", left_out}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string PredictionJson(const PredictedStrategy& strategy,
                           const CostInputs& inputs) {
  return StrategyJson(strategy, RowsAStep(inputs)).dump() + "\n";
}

}  // namespace tributary
