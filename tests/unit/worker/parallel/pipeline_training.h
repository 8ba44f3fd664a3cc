#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/layers/model_parameters.h"
#include "common/optimizer/optimizer.h"
#include "common/plan/pipeline_stages.h"
#include "tests/unit/worker/model/model_fixture.h"
#include "worker/collective/mesh.h"
#include "worker/collective/peer_communicator.h"
#include "worker/parallel/pipeline_stage.h"

namespace tributary::testing {

// A small training without processes: what one process and what a pipeline
// make of it.
struct Training {
  v1::ModelSpec spec;
  Shape sample;
  int64_t outputs = 1;
  int64_t positions = 1;
  int64_t rows = 1;  // of a step
  int steps = 20;
  uint64_t seed = 1;  // of dropout
  OptimizerOptions optimizer = {.learning_rate = 0.1};
  std::function<double(int step)> learning_rate;  // or the optimizer's
  std::function<void(int step, Batch* batch)> fill;
  std::vector<Floats> initial;  // of all parameters
};

struct Outcome {
  std::vector<double> losses;
  std::vector<Floats> first_gradients;  // of the first step, as `initial`
  std::vector<Floats> gradients;        // of the last step
  std::vector<Floats> weights;
  // Of a pipeline, by stage.
  std::vector<std::vector<PipelineEvent>> timelines;
  std::vector<std::vector<int>> ready;  // of the last step, in order
};

inline Batch MakeBatch(const Training& training, int step) {
  Batch batch;
  batch.rows = training.rows;
  batch.step = step;
  training.fill(step, &batch);
  return batch;
}

inline std::unique_ptr<Loss> MakeLoss(Ops* ops, const Training& training) {
  return *Loss::Create(FromText<v1::LossSpec>("cross_entropy {}"),
                       {.ops = ops,
                        .max_rows = training.rows,
                        .outputs = training.outputs,
                        .positions = training.positions});
}

// Updates the parameters of a model, or of a stage.
class LocalUpdates {
 public:
  LocalUpdates(Ops* ops, Model* model, const Training& training)
      : ops_(ops),
        model_(model),
        training_(training),
        optimizer_(training.optimizer) {
    for (int p = 0; p < size(); ++p) {
      const Floats& initial = training.initial[Place(p)];
      ops->CopyIn(model->weight(p), initial.data(),
                  initial.size() * sizeof(float));
      states_.emplace_back(optimizer_.state_names().size(),
                           Floats(initial.size()));
      optimizer_.InitializeState(static_cast<int64_t>(initial.size()),
                                 initial.data(), StateOf(p).data());
    }
  }

  void Update(int step) {
    const double rate = training_.learning_rate
                            ? training_.learning_rate(step)
                            : training_.optimizer.learning_rate;
    const OptimizerStep prepared = optimizer_.Prepare(step + 1, rate, 1);
    for (int p = 0; p < size(); ++p) {
      const ParameterSpec& spec = model_->parameters()[p];
      ops_->OptimizerUpdate(optimizer_.StepFor(spec, prepared), spec.size(),
                            model_->gradient(p), model_->weight(p),
                            model_->weight(p), StateOf(p).data());
    }
  }

  // By place in the whole model; a copy must be the owner's, bit for bit.
  std::map<int, Floats> Weights() { return Copies(&Model::weight); }
  std::map<int, Floats> Gradients() { return Copies(&Model::gradient); }

 private:
  int size() const { return static_cast<int>(model_->parameters().size()); }
  // In the whole model.
  int Place(int p) const {
    return PlaceOf(ModelParameters(training_.spec),
                   model_->parameters()[p].name);
  }
  std::map<int, Floats> Copies(float* (Model::*array)(int)) {
    std::map<int, Floats> copies;
    for (int p = 0; p < size(); ++p) {
      const float* data = (model_->*array)(p);
      copies[Place(p)] = Floats(data, data + model_->parameters()[p].size());
    }
    return copies;
  }
  std::vector<float*> StateOf(int p) {
    std::vector<float*> pointers;
    for (Floats& state : states_[p]) pointers.push_back(state.data());
    return pointers;
  }

  Ops* const ops_;
  Model* const model_;
  const Training& training_;
  Optimizer optimizer_;
  std::vector<std::vector<Floats>> states_;
};

inline std::vector<Floats> ByPlace(std::map<int, Floats> arrays) {
  std::vector<Floats> all;
  for (auto& [place, array] : arrays) all.push_back(std::move(array));
  return all;
}

// One process that adds up the gradients of `micro_batches` parts of a step.
inline Outcome TrainAlone(const Training& training, int micro_batches) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const auto model = *Model::Create(
      training.spec, training.sample,
      {.ops = ops.get(), .max_rows = training.rows, .seed = training.seed});
  const auto loss = MakeLoss(ops.get(), training);
  LocalUpdates updates(ops.get(), model.get(), training);
  Outcome outcome;
  for (int step = 0; step < training.steps; ++step) {
    const Batch batch = MakeBatch(training, step);
    double sum = 0;
    bool accumulate = false;
    for (const MicroBatch& part : CutBatch(batch, micro_batches)) {
      const float* logits =
          model->Forward(part.features, part.rows, part.context);
      const auto d_logits =
          loss->Differentiate(logits, part.targets, part.rows,
                              1.0 / static_cast<double>(training.rows));
      EXPECT_TRUE(d_logits.ok()) << d_logits.status();
      model->Backward(*d_logits, accumulate, nullptr);
      accumulate = true;
      sum += *loss->Sum();
    }
    outcome.losses.push_back(sum / static_cast<double>(training.rows));
    outcome.gradients = ByPlace(updates.Gradients());
    if (step == 0) outcome.first_gradients = outcome.gradients;
    updates.Update(step);
  }
  outcome.weights = ByPlace(updates.Weights());
  return outcome;
}

struct PipelineSetting {
  int stages = 2;
  int micro_batches = 2;
  PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward;
  // Makes the group of stages; none: in host memory.
  std::function<std::unique_ptr<Communicator>(std::unique_ptr<Mesh> mesh,
                                              Ops* ops)>
      connect;
};

// Stages of about as many parameters.
inline std::vector<int> StagesOf(const v1::ModelSpec& spec, int stages) {
  std::vector<double> costs(spec.sequential_size(), 1.0);
  for (const ParameterSpec& parameter : ModelParameters(spec)) {
    costs[std::stoi(parameter.name)] += static_cast<double>(parameter.size());
  }
  return CutStages(costs, stages);
}

// What one rank is made of; its thread owns it.
struct StageParts {
  std::unique_ptr<Ops> ops;
  std::unique_ptr<Model> model;
  std::unique_ptr<Loss> loss;
  std::unique_ptr<PipelineStage> stage;  // goes first
};

inline StageParts MakeStage(std::unique_ptr<Mesh> mesh,
                            const Training& training,
                            const PipelineSetting& setting,
                            absl::Duration timeout = absl::Seconds(20)) {
  const int s = mesh->rank();
  const std::vector<int> bounds = StagesOf(training.spec, setting.stages);
  StageParts parts;
  parts.ops = CreateCpuOps();
  auto model = Model::Create(
      training.spec, training.sample,
      {.ops = parts.ops.get(),
       .max_rows =
           (training.rows + setting.micro_batches - 1) / setting.micro_batches,
       .seed = training.seed,
       .first_layer = bounds[s],
       .end_layer = bounds[s + 1],
       .activation_sets = ActivationsInFlight(
           setting.schedule, s, setting.stages, setting.micro_batches)});
  EXPECT_TRUE(model.ok()) << model.status();
  parts.model = *std::move(model);
  if (s == setting.stages - 1) parts.loss = MakeLoss(parts.ops.get(), training);
  PipelineStage::Options options;
  if (setting.connect) {
    options.group = setting.connect(std::move(mesh), parts.ops.get());
  } else {
    options.group = std::make_unique<PeerCommunicator>(
        PeerCommunicator::Options{.mesh = std::move(mesh),
                                  .ops = parts.ops.get(),
                                  .timeout = timeout});
  }
  options.ops = parts.ops.get();
  options.model = parts.model.get();
  options.loss = parts.loss.get();
  options.schedule = setting.schedule;
  options.micro_batches = setting.micro_batches;
  options.shared = SharedParameters(training.spec, bounds, *parts.model, s);
  auto stage = PipelineStage::Create(std::move(options));
  EXPECT_TRUE(stage.ok()) << stage.status();
  parts.stage = *std::move(stage);
  return parts;
}

// One thread a stage.
inline void RunStages(
    int stages, const std::function<void(std::unique_ptr<Mesh> side)>& body) {
  std::vector<std::unique_ptr<Mesh>> sides = CreateInProcessMesh(stages);
  std::vector<std::thread> threads;
  for (int s = 0; s < stages; ++s) {
    threads.emplace_back([&, s] { body(std::move(sides[s])); });
  }
  for (std::thread& thread : threads) thread.join();
}

inline Outcome TrainInPipeline(const Training& training,
                               const PipelineSetting& setting) {
  const int stages = setting.stages;
  Outcome outcome;
  outcome.timelines.resize(stages);
  outcome.ready.resize(stages);
  outcome.losses.resize(training.steps);
  std::vector<std::map<int, Floats>> first(stages), last(stages),
      weights(stages);
  RunStages(stages, [&](std::unique_ptr<Mesh> side) {
    const int s = side->rank();
    const StageParts parts = MakeStage(std::move(side), training, setting);
    LocalUpdates updates(parts.ops.get(), parts.model.get(), training);
    for (int step = 0; step < training.steps; ++step) {
      const Batch batch = MakeBatch(training, step);
      const auto micro_batches = CutBatch(batch, setting.micro_batches);
      outcome.ready[s].clear();
      const auto sum = parts.stage->Run(
          {.micro_batches = micro_batches,
           .scale = 1.0 / static_cast<double>(training.rows),
           .gradient_ready = [&](int p) { outcome.ready[s].push_back(p); }});
      ASSERT_TRUE(sum.ok()) << sum.status();
      if (s == stages - 1) {
        outcome.losses[step] = *sum / static_cast<double>(training.rows);
      } else {
        EXPECT_EQ(*sum, 0);
      }
      last[s] = updates.Gradients();
      if (step == 0) first[s] = last[s];
      updates.Update(step);
    }
    weights[s] = updates.Weights();
    outcome.timelines[s] = parts.stage->timeline();
  });
  const auto merge = [](std::vector<std::map<int, Floats>>& by_stage) {
    std::map<int, Floats> all;
    for (auto& stage : by_stage) {
      for (auto& [place, array] : stage) {
        const auto [found, is_new] = all.emplace(place, array);
        EXPECT_TRUE(is_new || found->second == array) << "copy of " << place;
      }
    }
    return ByPlace(std::move(all));
  };
  outcome.first_gradients = merge(first);
  outcome.gradients = merge(last);
  outcome.weights = merge(weights);
  return outcome;
}

}  // namespace tributary::testing
