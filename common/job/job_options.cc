#include "common/job/job_options.h"

#include <algorithm>
#include <limits>

namespace tributary {
namespace {

using Kind = OptimizerOptions::Kind;

OptimizerOptions AdamOptions(Kind kind, const v1::AdamSpec& adam) {
  return {.kind = kind,
          .learning_rate = adam.learning_rate(),
          .weight_decay = adam.weight_decay(),
          .decay_matrices_only = adam.decay_on() == v1::DECAY_ON_MATRICES,
          .beta1 = adam.beta1(),
          .beta2 = adam.beta2(),
          .epsilon = adam.epsilon(),
          .amsgrad = adam.amsgrad()};
}

OptimizerOptions SgdOptions(const v1::SgdSpec& sgd) {
  return {.kind = Kind::kSgd,
          .learning_rate = sgd.learning_rate(),
          .weight_decay = sgd.weight_decay(),
          .decay_matrices_only = sgd.decay_on() == v1::DECAY_ON_MATRICES,
          .momentum = sgd.momentum(),
          .dampening = sgd.dampening(),
          .nesterov = sgd.nesterov()};
}

OptimizerOptions AdagradOptions(const v1::AdagradSpec& adagrad) {
  return {.kind = Kind::kAdagrad,
          .learning_rate = adagrad.learning_rate(),
          .weight_decay = adagrad.weight_decay(),
          .decay_matrices_only = adagrad.decay_on() == v1::DECAY_ON_MATRICES,
          .epsilon = adagrad.epsilon(),
          .learning_rate_decay = adagrad.learning_rate_decay(),
          .initial_accumulator = adagrad.initial_accumulator()};
}

OptimizerOptions RmspropOptions(const v1::RmspropSpec& rmsprop) {
  return {.kind = Kind::kRmsprop,
          .learning_rate = rmsprop.learning_rate(),
          .weight_decay = rmsprop.weight_decay(),
          .decay_matrices_only = rmsprop.decay_on() == v1::DECAY_ON_MATRICES,
          .momentum = rmsprop.momentum(),
          .epsilon = rmsprop.epsilon(),
          .alpha = rmsprop.alpha(),
          .centered = rmsprop.centered()};
}

OptimizerOptions LambOptions(const v1::LambSpec& lamb) {
  return {.kind = Kind::kLamb,
          .learning_rate = lamb.learning_rate(),
          .weight_decay = lamb.weight_decay(),
          .decay_matrices_only = lamb.decay_on() == v1::DECAY_ON_MATRICES,
          .beta1 = lamb.beta1(),
          .beta2 = lamb.beta2(),
          .epsilon = lamb.epsilon(),
          .bias_correction = lamb.bias_correction(),
          .clip_min = lamb.clip_min(),
          .clip_max = lamb.clip_max()};
}

OptimizerOptions FtrlOptions(const v1::FtrlSpec& ftrl) {
  return {.kind = Kind::kFtrl,
          .learning_rate = ftrl.alpha(),
          .initial_accumulator = ftrl.initial_accumulator(),
          .ftrl_beta = ftrl.beta(),
          .l1 = ftrl.l1(),
          .l2 = ftrl.l2()};
}

}  // namespace

OptimizerOptions OptimizerOptionsOf(const v1::OptimizerSpec& spec) {
  switch (spec.kind_case()) {
    case v1::OptimizerSpec::kSgd:
      return SgdOptions(spec.sgd());
    case v1::OptimizerSpec::kAdam:
      return AdamOptions(Kind::kAdam, spec.adam());
    case v1::OptimizerSpec::kAdamw:
      return AdamOptions(Kind::kAdamW, spec.adamw());
    case v1::OptimizerSpec::kAdagrad:
      return AdagradOptions(spec.adagrad());
    case v1::OptimizerSpec::kRmsprop:
      return RmspropOptions(spec.rmsprop());
    case v1::OptimizerSpec::kLamb:
      return LambOptions(spec.lamb());
    case v1::OptimizerSpec::kFtrl:
      return FtrlOptions(spec.ftrl());
    case v1::OptimizerSpec::KIND_NOT_SET:
      break;
  }
  return {};
}

Strategy StrategyOf(const v1::JobSpec& job) {
  const v1::StrategySpec& spec = job.strategy();
  const v1::PipelineParallelSpec& pipeline = spec.pipeline_parallel();
  Strategy strategy;
  strategy.workers = job.cluster().workers();
  strategy.servers = std::max(1, job.cluster().servers());
  strategy.tensor = std::max(1, spec.tensor_parallel().ranks());
  strategy.stages = std::max(1, pipeline.stages());
  if (strategy.stages > 1) {
    strategy.micro_batches = std::max(1, pipeline.micro_batches());
  }
  if (pipeline.schedule() == v1::PIPELINE_SCHEDULE_GPIPE) {
    strategy.schedule = PipelineSchedule::kGpipe;
  }
  const auto without_servers = [&strategy](Exchange exchange,
                                           const auto& exchanges) {
    strategy.exchange = exchange;
    strategy.bucket_bytes = exchanges.bucket_bytes();
    strategy.first_bucket_bytes = exchanges.first_bucket_bytes();
    strategy.timeout_seconds = exchanges.timeout_seconds();
  };
  if (spec.has_all_reduce()) {
    without_servers(spec.all_reduce().sharded() ? Exchange::kShardedAllReduce
                                                : Exchange::kAllReduce,
                    spec.all_reduce());
  } else if (spec.has_data_parallel()) {
    without_servers(Exchange::kThreads, spec.data_parallel());
  } else {
    strategy.bucket_bytes = spec.parameter_server().bucket_bytes();
    strategy.timeout_seconds = spec.parameter_server().sync_timeout_seconds();
    strategy.exchange_every = static_cast<int>(std::min<int64_t>(
        StepCountOf(job).steps_an_update, std::numeric_limits<int>::max()));
  }
  return strategy;
}

bool CutsLogits(const v1::JobSpec& job) {
  return job.training().loss().has_cross_entropy();
}

OptimizerOptions ServerOptimizerOptionsOf(const v1::JobSpec& job) {
  const v1::SyncSpec& sync = job.strategy().parameter_server().sync();
  if (!sync.has_local_sgd()) {
    return OptimizerOptionsOf(job.training().optimizer());
  }
  const v1::OuterSpec& outer = sync.local_sgd().outer();
  return {.kind = Kind::kSgd,
          .learning_rate = outer.learning_rate(),
          .momentum = outer.momentum(),
          .nesterov = outer.nesterov(),
          .takes_running_averages = true};
}

StepCount StepCountOf(const v1::JobSpec& job) {
  const v1::SyncSpec& sync = job.strategy().parameter_server().sync();
  StepCount count;
  if (sync.has_local_sgd()) count.steps_an_update = sync.local_sgd().period();
  if (sync.has_ssp() || sync.has_async()) {
    count.updates_a_step = job.cluster().workers();
  }
  return count;
}

}  // namespace tributary
