// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "common/optimizer/optimizer.h"
#include "tests/unit/worker/train/model/model_fixture.h"
#include "worker/rank/collective/mesh.h"
#include "worker/train/pipeline/pipeline_stage.h"

namespace tributary::testing {

inline constexpr PipelineSchedule kSchedules[] = {
    PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward};

// A small training without other processes, which runs alone or in a pipeline
// of threads.
struct Training {
  v1::ModelSpec spec;
  Shape sample;
  int64_t outputs = 1;
  int64_t positions = 1;
  int64_t rows = 1;  // of a step
  int steps = 20;
  uint64_t seed = 1;  // of dropout
  OptimizerOptions optimizer = OptimizerOf("sgd", 0.1);
  std::function<double(int step)> learning_rate;  // null: the optimizer's
  std::function<void(int step, Batch* batch)> fill;
  std::vector<Floats> initial;  // of all parameters
};

struct Outcome {
  std::vector<double> losses;
  std::vector<Floats> first_gradients;  // of the first step, as `initial`
  std::vector<Floats> gradients;        // of the last step
  std::vector<Floats> weights;
  // The timelines of a pipeline, by stage.
  std::vector<std::vector<PipelineEvent>> timelines;
  std::vector<std::vector<int>> ready;  // of the last step, in order
};

Batch MakeBatch(const Training& training, int step);

std::unique_ptr<Loss> MakeLoss(Ops* ops, const Training& training);

// Updates the parameters of a model, or of a stage.
class LocalUpdates {
 public:
  LocalUpdates(Ops* ops, Model* model, const Training& training);

  void Update(int step);

  // By place in the whole model; a copy must be the owner's, bit for bit.
  std::map<int, Floats> Weights() { return Copies(&Model::weight); }
  std::map<int, Floats> Gradients() { return Copies(&Model::gradient); }

 private:
  int size() const { return static_cast<int>(model_->parameters().size()); }
  int Place(int p) const;  // in the whole model
  std::map<int, Floats> Copies(float* (Model::*array)(int));
  std::vector<float*> StateOf(int p);

  Ops* const ops_;
  Model* const model_;
  const Training& training_;
  Optimizer optimizer_;
  std::vector<std::vector<Floats>> states_;
};

// One process that adds up the gradients of `micro_batches` parts of a step.
Outcome TrainAlone(const Training& training, int micro_batches);

struct PipelineSetting {
  int stages = 2;
  int micro_batches = 2;
  PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward;
  // Makes the group of stages; if null, the group uses host memory.
  std::function<std::unique_ptr<Communicator>(std::unique_ptr<Mesh> mesh,
                                              Ops* ops)>
      connect;
};

// Stages of about as many parameters.
std::vector<int> StagesOf(const v1::ModelSpec& spec, int stages);

// The objects of one rank, which its thread owns.
struct StageParts {
  std::unique_ptr<Ops> ops;
  std::unique_ptr<Model> model;
  std::unique_ptr<Loss> loss;
  std::unique_ptr<PipelineStage> stage;  // is destroyed first
};

StageParts MakeStage(std::unique_ptr<Mesh> mesh, const Training& training,
                     const PipelineSetting& setting,
                     absl::Duration timeout = absl::Seconds(20));

// Runs `body` for each stage on a thread of its own.
void RunStages(int stages,
               const std::function<void(std::unique_ptr<Mesh> side)>& body);

Outcome TrainInPipeline(const Training& training,
                        const PipelineSetting& setting);

}  // namespace tributary::testing
