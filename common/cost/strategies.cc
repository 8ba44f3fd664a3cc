#include "common/cost/strategies.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/job/job_options.h"
#include "common/layers/layer_kind.h"
#include "common/plan/partition_plan.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// An additional server must save at least this part of the step.
constexpr double kWorthAServer = 0.01;

// Tensors beside each weight (kernels/optimizer.cc).
int StatesOf(const OptimizerOptions& options) {
  using Kind = OptimizerOptions::Kind;
  switch (options.kind) {
    case Kind::kSgd:
      return options.momentum > 0 ? 1 : 0;
    case Kind::kAdam:
    case Kind::kAdamW:
      return options.amsgrad ? 3 : 2;
    case Kind::kAdagrad:
      return 1;
    case Kind::kRmsprop:
      return 1 + (options.momentum > 0 ? 1 : 0) + (options.centered ? 1 : 0);
    case Kind::kLamb:
    case Kind::kFtrl:
      return 2;
  }
  return 0;
}

const char* ExchangeName(Exchange exchange) {
  switch (exchange) {
    case Exchange::kParameterServer:
      return "parameter_server";
    case Exchange::kAllReduce:
      return "all_reduce";
    case Exchange::kShardedAllReduce:
      return "all_reduce sharded";
    case Exchange::kThreads:
      return "data_parallel";
  }
  return "?";
}

// Adds the prediction of a strategy, or the reason why it cannot run.
class Candidates {
 public:
  Candidates(const CostInputs& inputs, const StrategyCheck& check,
             StrategyPlan* plan)
      : inputs_(inputs), check_(check), plan_(plan) {}

  void Add(const StrategyShape& shape, int workers) {
    Take(Predict(shape, workers), StrategyText(shape, workers));
  }

  // Adds the fastest number of micro-batches.
  void AddPipeline(StrategyShape shape) {
    const int64_t rows =
        inputs_.global_rows / (inputs_.workers / (shape.tensor * shape.stages));
    absl::StatusOr<PredictedStrategy> best = absl::UnknownError("");
    for (int times : {1, 2, 4, 8}) {
      shape.micro_batches = times * shape.stages;
      if (times > 1 && shape.micro_batches > rows) break;
      absl::StatusOr<PredictedStrategy> made = Predict(shape, inputs_.workers);
      if (times > 1 && !made.ok()) break;
      if (times == 1 ||
          made->prediction.step_seconds < best->prediction.step_seconds) {
        best = std::move(made);
      }
      if (!best.ok()) break;
    }
    shape.micro_batches = shape.stages;
    Take(std::move(best), StrategyText(shape, inputs_.workers));
  }

 private:
  absl::StatusOr<PredictedStrategy> Predict(const StrategyShape& shape,
                                            int workers) const {
    TRIBUTARY_RETURN_IF_ERROR(check_(shape, workers));
    CostInputs own = inputs_;
    own.strategy = shape;
    own.workers = workers;
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

StrategyShape ShapeWith(const CostInputs& inputs, Exchange exchange,
                        int servers) {
  StrategyShape shape = inputs.strategy;
  shape.tensor = shape.stages = shape.micro_batches = 1;
  if (exchange != Exchange::kParameterServer) shape.exchange_every = 1;
  // The job's bucket sizes apply to its own strategy; others use their
  // defaults.
  const bool servers_now = exchange == Exchange::kParameterServer;
  if (servers_now != (shape.exchange == Exchange::kParameterServer)) {
    shape.bucket_bytes = servers_now ? PartitionPlan::kDefaultBucketBytes
                                     : StrategyShape::kAllReduceBucketBytes;
    shape.first_bucket_bytes = StrategyShape::kFirstBucketBytes;
  }
  shape.exchange = exchange;
  shape.servers = servers;
  return shape;
}

absl::StatusOr<int> BestServers(const CostInputs& inputs) {
  int best = 1;
  double best_seconds = 0;
  for (int servers = 1; servers <= 2 * inputs.workers; ++servers) {
    CostInputs own = inputs;
    own.strategy = ShapeWith(inputs, Exchange::kParameterServer, servers);
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

StrategyShape ShapeOfJob(const v1::JobSpec& job) {
  StrategyShape shape;
  shape.servers = std::max(1, job.cluster().servers());
  const DeviceMesh mesh = DeviceMeshOf(job);
  shape.tensor = mesh.tensor;
  shape.stages = mesh.stages;
  const v1::StrategySpec& strategy = job.strategy();
  if (mesh.stages > 1) {
    const v1::PipelineParallelSpec& pipeline = strategy.pipeline_parallel();
    shape.micro_batches = std::max(1, pipeline.micro_batches());
    shape.schedule = pipeline.schedule() == v1::PIPELINE_SCHEDULE_GPIPE
                         ? PipelineSchedule::kGpipe
                         : PipelineSchedule::kOneForwardOneBackward;
  }
  const auto take_buckets = [&shape](const auto& spec) {
    shape.bucket_bytes = spec.bucket_bytes();
    shape.first_bucket_bytes = spec.first_bucket_bytes();
  };
  if (strategy.has_all_reduce()) {
    shape.exchange = strategy.all_reduce().sharded()
                         ? Exchange::kShardedAllReduce
                         : Exchange::kAllReduce;
    take_buckets(strategy.all_reduce());
  } else if (strategy.has_data_parallel()) {
    shape.exchange = Exchange::kThreads;
    take_buckets(strategy.data_parallel());
  } else {
    shape.bucket_bytes = strategy.parameter_server().bucket_bytes();
    shape.exchange_every = static_cast<int>(std::min<int64_t>(
        StepCountOf(job).steps_an_update, std::numeric_limits<int>::max()));
  }
  return shape;
}

CostInputs InputsOfJob(const v1::JobSpec& job) {
  CostInputs inputs;
  inputs.workers = job.cluster().workers();
  inputs.global_rows = job.data().batch_case() == v1::DataSpec::kGlobalBatchSize
                           ? job.data().global_batch_size()
                           : job.data().batch_size() * DeviceMeshOf(job).data;
  inputs.accumulation = job.training().gradient_accumulation();
  inputs.optimizer_states =
      StatesOf(OptimizerOptionsOf(job.training().optimizer()));
  inputs.cut_logits = CutsLogits(job);
  inputs.strategy = ShapeOfJob(job);
  return inputs;
}

absl::StatusOr<Shape> SampleShapeOf(const v1::JobSpec& job) {
  const v1::DataSource& data = job.data().train();
  if (data.has_text()) return Shape{data.text().length()};
  if (data.synthetic().length() > 0) return Shape{data.synthetic().length()};
  for (const v1::LayerSpec& layer : job.model().sequential()) {
    const LayerKind* kind = KindOf(layer);
    if (kind == nullptr) break;
    if (const int64_t in = kind->ProductOf(layer).in; in > 0) return Shape{in};
    if (!kind->memory().passes_through) break;
  }
  return absl::FailedPreconditionError(
      "the job does not say which shape a sample has");
}

std::string StrategyText(const StrategyShape& shape, int workers) {
  const int replicas = workers / (shape.tensor * shape.stages);
  std::vector<std::string> axes;
  if (shape.tensor > 1) axes.push_back(absl::StrCat("tensor ", shape.tensor));
  if (shape.stages > 1) {
    axes.push_back(absl::StrCat(
        "pipeline ", shape.stages,
        shape.schedule == PipelineSchedule::kGpipe ? " gpipe" : " 1f1b", " (",
        shape.micro_batches, " micro-batches)"));
  }
  std::string exchange = ExchangeName(shape.exchange);
  if (shape.exchange == Exchange::kParameterServer) {
    absl::StrAppend(&exchange, ", ", shape.servers,
                    shape.servers == 1 ? " server" : " servers");
  }
  if (axes.empty()) {
    const bool alone =
        workers == 1 && shape.exchange != Exchange::kParameterServer;
    return alone ? "one worker" : exchange;
  }
  std::string name = replicas > 1 ? absl::StrCat("data ", replicas, " x ") : "";
  for (size_t i = 0; i < axes.size(); ++i) {
    absl::StrAppend(&name, i > 0 ? " x " : "", axes[i]);
  }
  return replicas > 1 ? absl::StrCat(name, ", ", exchange) : name;
}

absl::StatusOr<PredictedStrategy> PredictOwn(const CostInputs& inputs) {
  TRIBUTARY_ASSIGN_OR_RETURN(const Prediction prediction, PredictStep(inputs));
  return PredictedStrategy{StrategyText(inputs.strategy, inputs.workers),
                           inputs.strategy, inputs.workers, prediction};
}

absl::StatusOr<StrategyPlan> PlanStrategies(const CostInputs& inputs,
                                            int servers,
                                            const StrategyCheck& check) {
  StrategyPlan plan;
  Candidates candidates(inputs, check, &plan);
  const int workers = inputs.workers;
  candidates.Add(ShapeWith(inputs, Exchange::kAllReduce, 1), 1);
  TRIBUTARY_ASSIGN_OR_RETURN(plan.best_servers, BestServers(inputs));
  std::vector<int> numbers = {servers};
  if (plan.best_servers != servers) numbers.push_back(plan.best_servers);
  for (int number : numbers) {
    candidates.Add(ShapeWith(inputs, Exchange::kParameterServer, number),
                   workers);
  }
  if (workers > 1) {
    for (Exchange exchange : {Exchange::kAllReduce, Exchange::kShardedAllReduce,
                              Exchange::kThreads}) {
      candidates.Add(ShapeWith(inputs, exchange, 1), workers);
    }
  }
  for (int ranks = 2; ranks <= workers; ++ranks) {
    if (workers % ranks != 0) continue;
    std::vector<Exchange> exchanges = {Exchange::kAllReduce};
    if (ranks < workers) exchanges.push_back(Exchange::kParameterServer);
    for (Exchange exchange : exchanges) {
      StrategyShape shape = ShapeWith(inputs, exchange, servers);
      shape.exchange_every = 1;
      shape.tensor = ranks;
      candidates.Add(shape, workers);
      shape.tensor = 1;
      shape.stages = ranks;
      candidates.AddPipeline(shape);
    }
  }
  if (plan.strategies.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no strategy can run the job; ", plan.left_out[0].name,
                     ": ", plan.left_out[0].why));
  }
  for (size_t i = 1; i < plan.strategies.size(); ++i) {
    if (plan.strategies[i].prediction.step_seconds <
        plan.strategies[plan.fastest].prediction.step_seconds) {
      plan.fastest = i;
    }
  }
  return plan;
}

}  // namespace tributary
