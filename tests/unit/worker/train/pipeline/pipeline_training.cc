// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/worker/train/pipeline/pipeline_training.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>

#include "common/layers/model_parameters.h"
#include "common/plan/pipeline_stages.h"
#include "worker/rank/collective/peer_communicator.h"

namespace tributary::testing {

Batch MakeBatch(const Training& training, int step) {
  Batch batch;
  batch.rows = training.rows;
  batch.step = step;
  training.fill(step, &batch);
  return batch;
}

std::unique_ptr<Loss> MakeLoss(Ops* ops, const Training& training) {
  return *Loss::Create(FromText<v1::LossSpec>("cross_entropy {}"),
                       {.ops = ops,
                        .max_rows = training.rows,
                        .outputs = training.outputs,
                        .positions = training.positions});
}

LocalUpdates::LocalUpdates(Ops* ops, Model* model, const Training& training)
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

void LocalUpdates::Update(int step) {
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

int LocalUpdates::Place(int p) const {
  return PlaceOf(ModelParameters(training_.spec), model_->parameters()[p].name);
}

std::map<int, Floats> LocalUpdates::Copies(float* (Model::*array)(int)) {
  std::map<int, Floats> copies;
  for (int p = 0; p < size(); ++p) {
    const float* data = (model_->*array)(p);
    copies[Place(p)] = Floats(data, data + model_->parameters()[p].size());
  }
  return copies;
}

std::vector<float*> LocalUpdates::StateOf(int p) {
  std::vector<float*> pointers;
  for (Floats& state : states_[p]) pointers.push_back(state.data());
  return pointers;
}

namespace {

std::vector<Floats> ByPlace(std::map<int, Floats> arrays) {
  std::vector<Floats> all;
  for (auto& [place, array] : arrays) all.push_back(std::move(array));
  return all;
}

}  // namespace

Outcome TrainAlone(const Training& training, int micro_batches) {
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

std::vector<int> StagesOf(const v1::ModelSpec& spec, int stages) {
  std::vector<double> costs(spec.sequential_size(), 1.0);
  for (const ParameterSpec& parameter : ModelParameters(spec)) {
    costs[std::stoi(parameter.name)] += static_cast<double>(parameter.size());
  }
  return CutStages(costs, stages);
}

StageParts MakeStage(std::unique_ptr<Mesh> mesh, const Training& training,
                     const PipelineSetting& setting, absl::Duration timeout) {
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

void RunStages(int stages,
               const std::function<void(std::unique_ptr<Mesh> side)>& body) {
  std::vector<std::unique_ptr<Mesh>> sides = CreateInProcessMesh(stages);
  std::vector<std::thread> threads;
  for (int s = 0; s < stages; ++s) {
    threads.emplace_back([&, s] { body(std::move(sides[s])); });
  }
  for (std::thread& thread : threads) thread.join();
}

Outcome TrainInPipeline(const Training& training,
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
