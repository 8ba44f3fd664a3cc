// SPDX-License-Identifier: Apache-2.0
// Pipelines whose stages are tensor-parallel groups, against one process.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <thread>

#include "common/base/parameter_slice.h"
#include "common/layers/model_parameters.h"
#include "tests/unit/worker/train/pipeline/golden_trainings.h"
#include "worker/rank/collective/peer_communicator.h"
#include "worker/train/model/tensor_group.h"

namespace tributary::testing {
namespace {

// A grid of ranks, each a thread's: tensor groups within a stage, pipelines
// across the stages.
class Grid {
 public:
  Grid(const Training& training, const PipelineSetting& setting,
       int tensor_ranks)
      : training_(training), setting_(setting), tensor_ranks_(tensor_ranks) {
    const ParameterSpecs parameters = ModelParameters(training.spec);
    for (const ParameterSpec& parameter : parameters) {
      weights_.emplace_back(parameter.size());
    }
  }

  void Train() {
    std::vector<std::vector<std::unique_ptr<Mesh>>> pipelines, groups;
    for (int t = 0; t < tensor_ranks_; ++t) {
      pipelines.push_back(CreateInProcessMesh(setting_.stages));
    }
    for (int s = 0; s < setting_.stages; ++s) {
      groups.push_back(CreateInProcessMesh(tensor_ranks_));
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < tensor_ranks_; ++t) {
      for (int s = 0; s < setting_.stages; ++s) {
        threads.emplace_back([&, t, s] {
          Rank(s, std::move(pipelines[t][s]), std::move(groups[s][t]));
        });
      }
    }
    for (std::thread& thread : threads) thread.join();
  }

  const std::vector<double>& losses() const { return losses_; }
  const std::vector<Floats>& weights() const { return weights_; }

 private:
  void Rank(int s, std::unique_ptr<Mesh> pipeline,
            std::unique_ptr<Mesh> tensor) {
    const std::unique_ptr<Ops> ops = CreateCpuOps();
    PeerCommunicator communicator(
        {.mesh = std::move(tensor), .ops = ops.get()});
    TensorGroup group({.ops = ops.get(), .communicator = &communicator});
    const std::vector<int> bounds = StagesOf(training_.spec, setting_.stages);
    const auto model = *Model::Create(
        training_.spec, training_.sample,
        {.ops = ops.get(),
         .max_rows = training_.rows,
         .seed = training_.seed,
         .group = &group,
         .cut_logits = true,
         .first_layer = bounds[s],
         .end_layer = bounds[s + 1],
         .activation_sets = ActivationsInFlight(
             setting_.schedule, s, setting_.stages, setting_.micro_batches)});
    const bool last = s == setting_.stages - 1;
    std::unique_ptr<Loss> loss;
    if (last) {
      loss = *Loss::Create(FromText<v1::LossSpec>("cross_entropy {}"),
                           {.ops = ops.get(),
                            .max_rows = training_.rows,
                            .outputs = model->output_shape().back(),
                            .positions = training_.positions,
                            .cut = model->output_cut()});
    }
    const auto stage = *PipelineStage::Create(
        {.group = std::make_unique<PeerCommunicator>(PeerCommunicator::Options{
             .mesh = std::move(pipeline), .ops = ops.get()}),
         .ops = ops.get(),
         .model = model.get(),
         .loss = loss.get(),
         .schedule = setting_.schedule,
         .micro_batches = setting_.micro_batches,
         .shared = SharedParameters(training_.spec, bounds, *model, s)});
    Train(*model, *stage);
  }

  void Train(Model& model, PipelineStage& stage) {
    const int parameters = static_cast<int>(model.parameters().size());
    const ParameterSpecs all = ModelParameters(training_.spec);
    const auto place_of = [&](int p) {
      return PlaceOf(all, model.parameters()[p].name);
    };
    for (int p = 0; p < parameters; ++p) {
      SliceParameter(all[place_of(p)].shape, model.slices()[p],
                     training_.initial[place_of(p)].data(), model.weight(p));
    }
    std::vector<double> losses;
    for (int step = 0; step < training_.steps; ++step) {
      const Batch batch = MakeBatch(training_, step);
      const auto cut = CutBatch(batch, setting_.micro_batches);
      const auto sum =
          stage.Run({.micro_batches = cut,
                     .scale = 1.0 / static_cast<double>(training_.rows),
                     .gradient_ready = [](int) {}});
      ASSERT_TRUE(sum.ok()) << sum.status();
      losses.push_back(*sum / static_cast<double>(training_.rows));
      for (int p = 0; p < parameters; ++p) {
        for (int64_t i = 0; i < model.parameters()[p].size(); ++i) {
          model.weight(p)[i] -= 0.1f * model.gradient(p)[i];
        }
      }
    }
    const std::lock_guard<std::mutex> lock(mu_);
    if (stage.group().rank() == setting_.stages - 1) losses_ = losses;
    for (int p = 0; p < parameters; ++p) {
      PlaceSlice(all[place_of(p)].shape, model.slices()[p], model.weight(p),
                 weights_[place_of(p)].data());
    }
  }

  const Training& training_;
  const PipelineSetting setting_;
  const int tensor_ranks_;
  std::mutex mu_;
  std::vector<Floats> weights_;
  std::vector<double> losses_;
};

// Worst distance, relative to the greatest weight of a tensor.
double ExpectAsAlone(const Training& training, const PipelineSetting& setting) {
  const Outcome alone = TrainAlone(training, 1);
  Grid grid(training, setting, 2);
  grid.Train();
  double worst = 0;
  for (int step = 0; step < training.steps; ++step) {
    EXPECT_NEAR(grid.losses()[step], alone.losses[step],
                2e-6 * alone.losses[step]);
  }
  for (size_t p = 0; p < alone.weights.size(); ++p) {
    double greatest = 0, distance = 0;
    for (size_t i = 0; i < alone.weights[p].size(); ++i) {
      const double expected = alone.weights[p][i];
      greatest = std::max(greatest, std::abs(expected));
      distance = std::max(distance, std::abs(grid.weights()[p][i] - expected));
    }
    EXPECT_LE(distance, 1e-5 * greatest) << "parameter " << p;
    worst = std::max(worst, distance / greatest);
  }
  return worst;
}

// With three stages, the two layers of a pair are on different stages: the
// array between them stays cut when it is sent.
TEST(PipelineTensorTest, ATensorParallelMlpInAPipelineIsOneProcess) {
  const Training training = WithSgd(Mlp().training, 20);
  double worst = 0;
  for (int p : {2, 3}) {
    worst = std::max(worst, ExpectAsAlone(training, {p, 4}));
  }
  std::printf("[ distance ] mlp, 2 tensor ranks: %.1e\n", worst);
}

TEST(PipelineTensorTest, ATensorParallelTiedGptInAPipelineIsOneProcess) {
  const Training training = WithSgd(Gpt("gpt_a").training, 20);
  double worst = 0;
  for (int p : {2, 3}) {
    for (PipelineSchedule schedule : kSchedules)
      worst = std::max(worst, ExpectAsAlone(training, {p, 4, schedule}));
  }
  std::printf("[ distance ] tied gpt, 2 tensor ranks: %.1e\n", worst);
}

}  // namespace
}  // namespace tributary::testing
