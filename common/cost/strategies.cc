// SPDX-License-Identifier: Apache-2.0
#include "common/cost/strategies.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/job/job_options.h"
#include "common/job/sources/source_kind.h"
#include "common/layers/layer_kind.h"
#include "common/optimizer/optimizer.h"
#include "common/plan/partition_plan.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// An additional server must save at least this part of the step.
constexpr double kWorthAServer = 0.05;

// Adds the prediction of a strategy, or the reason why it cannot run.
class Candidates {
 public:
  Candidates(const CostInputs& inputs, const StrategyCheck& check,
             StrategyPlan* plan)
      : inputs_(inputs), check_(check), plan_(plan) {}

  void Add(const Strategy& strategy) {
    Take(Predict(strategy), StrategyText(strategy));
  }

  // Adds the fastest number of micro-batches.
  void AddPipeline(Strategy strategy) {
    const int64_t rows = inputs_.global_rows / strategy.mesh().data;
    absl::StatusOr<PredictedStrategy> best = absl::UnknownError("");
    for (int times : {1, 2, 4, 8}) {
      strategy.micro_batches = times * strategy.stages;
      if (times > 1 && strategy.micro_batches > rows) break;
      absl::StatusOr<PredictedStrategy> made = Predict(strategy);
      if (times > 1 && !made.ok()) break;
      if (times == 1 ||
          made->prediction.step_seconds < best->prediction.step_seconds) {
        best = std::move(made);
      }
      if (!best.ok()) break;
    }
    strategy.micro_batches = strategy.stages;
    Take(std::move(best), StrategyText(strategy));
  }

 private:
  absl::StatusOr<PredictedStrategy> Predict(const Strategy& strategy) const {
    TRIBUTARY_RETURN_IF_ERROR(check_(strategy));
    CostInputs own = inputs_;
    own.strategy = strategy;
    return PredictOwn(own);
  }

  void Take(absl::StatusOr<PredictedStrategy> made, std::string name) {
    if (made.ok()) return plan_->strategies.push_back(*std::move(made));
    plan_->left_out.push_back(
        {std::move(name), std::string(made.status().message())});
  }

  const CostInputs& inputs_;
  const StrategyCheck& check_;
  StrategyPlan* const plan_;
};

Strategy StrategyWith(const CostInputs& inputs, Exchange exchange,
                      int servers) {
  Strategy strategy = inputs.strategy;
  strategy.tensor = strategy.stages = strategy.micro_batches = 1;
  if (exchange != Exchange::kParameterServer) strategy.exchange_every = 1;
  // The job's bucket sizes apply to its own strategy; others use their
  // defaults.
  const bool servers_now = exchange == Exchange::kParameterServer;
  if (servers_now != (strategy.exchange == Exchange::kParameterServer)) {
    strategy.bucket_bytes = servers_now ? 0 : Strategy::kAllReduceBucketBytes;
    strategy.first_bucket_bytes = Strategy::kFirstBucketBytes;
  }
  strategy.exchange = exchange;
  strategy.servers = servers;
  return strategy;
}

absl::StatusOr<int> BestServers(const CostInputs& inputs) {
  int best = 1;
  double best_seconds = 0;
  for (int servers = 1; servers <= 2 * inputs.strategy.workers; ++servers) {
    CostInputs own = inputs;
    own.strategy = StrategyWith(inputs, Exchange::kParameterServer, servers);
    const absl::StatusOr<Prediction> prediction = PredictStep(own);
    if (servers == 1 && !prediction.ok()) return prediction.status();
    if (!prediction.ok()) break;
    if (servers > 1 &&
        prediction->step_seconds >= best_seconds * (1 - kWorthAServer)) {
      continue;
    }
    best = servers;
    best_seconds = prediction->step_seconds;
  }
  return best;
}

}  // namespace

CostInputs InputsOfJob(const v1::JobSpec& job) {
  CostInputs inputs;
  inputs.strategy = StrategyOf(job);
  inputs.global_rows =
      job.data().batch_case() == v1::DataSpec::kGlobalBatchSize
          ? job.data().global_batch_size()
          : job.data().batch_size() * inputs.strategy.mesh().data;
  inputs.accumulation = job.training().gradient_accumulation();
  inputs.optimizer_states =
      Optimizer(OptimizerOptionsOf(job.training().optimizer()))
          .states_per_weight();
  inputs.cut_logits = CutsLogits(job);
  return inputs;
}

absl::StatusOr<Shape> SampleShapeOf(const v1::JobSpec& job) {
  const v1::DataSource& data = job.data().train();
  if (const int64_t length = SequenceLengthOf(data)) return Shape{length};
  for (const v1::LayerSpec& layer : job.model().sequential()) {
    const LayerKind* kind = KindOf(layer);
    if (kind == nullptr) break;
    if (const int64_t in = kind->ProductOf(layer).in; in > 0) return Shape{in};
    if (!kind->memory().passes_through) break;
  }
  return absl::FailedPreconditionError(
      "the job does not say which shape a sample has");
}

std::string StrategyText(const Strategy& strategy) {
  if (strategy.workers == 1 && !strategy.uses_servers()) return "single";
  std::vector<std::string> parts;
  if (strategy.tensor > 1) {
    parts.push_back(absl::StrCat("tensor_parallel:", strategy.tensor));
  }
  if (strategy.stages > 1) {
    parts.push_back(absl::StrCat(
        "pipeline_parallel:", strategy.stages,
        strategy.schedule == PipelineSchedule::kGpipe ? ":gpipe:" : ":1f1b:",
        strategy.micro_batches));
  }
  if (parts.empty() || strategy.mesh().data > 1) {
    const bool sharded = strategy.exchange == Exchange::kShardedAllReduce;
    parts.push_back(absl::StrCat(strategy.name(), sharded ? ":sharded" : ""));
  }
  std::string name = absl::StrJoin(parts, "+");
  if (strategy.uses_servers()) {
    absl::StrAppend(&name, ", ", strategy.servers,
                    strategy.servers == 1 ? " server" : " servers");
  }
  return name;
}

bool UsesLinks(const Strategy& strategy) {
  return strategy.uses_servers() ||
         (strategy.workers > 1 && strategy.exchange != Exchange::kThreads);
}

absl::StatusOr<PredictedStrategy> PredictOwn(const CostInputs& inputs) {
  TRIBUTARY_ASSIGN_OR_RETURN(const Prediction prediction, PredictStep(inputs));
  return PredictedStrategy{StrategyText(inputs.strategy), inputs.strategy,
                           prediction};
}

absl::StatusOr<StrategyPlan> PlanStrategies(const CostInputs& inputs,
                                            int servers,
                                            const StrategyCheck& check) {
  StrategyPlan plan;
  Candidates candidates(inputs, check, &plan);
  const int workers = inputs.strategy.workers;
  Strategy alone = StrategyWith(inputs, Exchange::kAllReduce, 1);
  alone.workers = 1;
  candidates.Add(alone);
  TRIBUTARY_ASSIGN_OR_RETURN(plan.best_servers, BestServers(inputs));
  std::vector<int> numbers = {servers};
  if (plan.best_servers != servers) numbers.push_back(plan.best_servers);
  for (int number : numbers) {
    candidates.Add(StrategyWith(inputs, Exchange::kParameterServer, number));
  }
  if (workers > 1) {
    for (Exchange exchange : {Exchange::kAllReduce, Exchange::kShardedAllReduce,
                              Exchange::kThreads}) {
      candidates.Add(StrategyWith(inputs, exchange, 1));
    }
  }
  for (int ranks = 2; ranks <= workers; ++ranks) {
    if (workers % ranks != 0) continue;
    std::vector<Exchange> exchanges = {Exchange::kAllReduce};
    if (ranks < workers) exchanges.push_back(Exchange::kParameterServer);
    for (Exchange exchange : exchanges) {
      Strategy strategy = StrategyWith(inputs, exchange, servers);
      strategy.exchange_every = 1;
      strategy.tensor = ranks;
      candidates.Add(strategy);
      strategy.tensor = 1;
      strategy.stages = ranks;
      candidates.AddPipeline(strategy);
    }
  }
  if (plan.strategies.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no strategy can run the job; ", plan.left_out[0].name,
                     ": ", plan.left_out[0].why));
  }
  for (size_t i = 0; i < plan.strategies.size(); ++i) {
    const double seconds = plan.strategies[i].prediction.step_seconds;
    const auto faster_than = [&](size_t other) {
      return seconds < plan.strategies[other].prediction.step_seconds;
    };
    if (faster_than(plan.fastest)) plan.fastest = i;
    if (!UsesLinks(plan.strategies[i].strategy)) continue;
    if (!plan.fastest_over_links || faster_than(*plan.fastest_over_links)) {
      plan.fastest_over_links = i;
    }
  }
  return plan;
}

}  // namespace tributary
