// SPDX-License-Identifier: Apache-2.0
// Stages as threads against one process.
#include "worker/train/pipeline/pipeline_stage.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <barrier>
#include <cmath>

#include "common/layers/model_parameters.h"
#include "tests/testing/nccl/fake_nccl.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/train/pipeline/golden_trainings.h"
#include "tests/unit/worker/train/pipeline/small_training.h"
#include "worker/rank/collective/nccl_communicator.h"
#include "worker/train/model/evaluator.h"

namespace tributary::testing {
namespace {

using Kind = PipelineEvent::Kind;

// Relative to the greatest of the tensor.
double Distance(const Floats& got, const Floats& expected) {
  double greatest = 0, distance = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    greatest = std::max(greatest, std::abs(double{expected[i]}));
    distance = std::max(distance, std::abs(double{got[i]} - expected[i]));
  }
  return greatest == 0 ? distance : distance / greatest;
}

void ExpectEqual(const Outcome& got, const Outcome& expected, bool bits,
                 double* worst) {
  ASSERT_EQ(got.weights.size(), expected.weights.size());
  for (size_t i = 0; i < got.losses.size(); ++i) {
    EXPECT_NEAR(got.losses[i], expected.losses[i],
                bits ? 0 : 2e-6 * std::abs(expected.losses[i]))
        << "step " << i;
  }
  for (const auto& [a, b] :
       {std::pair(&got.gradients, &expected.gradients),
        std::pair(&got.first_gradients, &expected.first_gradients),
        std::pair(&got.weights, &expected.weights)}) {
    for (size_t p = 0; p < a->size(); ++p) {
      if (bits) {
        EXPECT_EQ((*a)[p], (*b)[p]) << "parameter " << p;
      } else {
        const double distance = Distance((*a)[p], (*b)[p]);
        EXPECT_LE(distance, 1e-5) << "parameter " << p;
        *worst = std::max(*worst, distance);
      }
    }
  }
}

// The stages do the arithmetic of one process that adds up the gradients of the
// same micro-batches, in the same order.
TEST(PipelineStageTest, WithoutTiesTheBitsAreThoseOfAccumulation) {
  for (const Training& training :
       {WithSgd(Mlp().training, 20), WithSgd(Cnn().training, 15),
        WithSgd(Gpt("gpt_b").training, 20)}) {
    for (int m : {3, 5}) {
      const Outcome alone = TrainAlone(training, m);
      for (PipelineSchedule schedule : kSchedules) {
        for (int p = 2; p <= std::min(4, training.spec.sequential_size());
             ++p) {
          ExpectEqual(TrainInPipeline(training, {p, m, schedule}), alone,
                      /*bits=*/true, nullptr);
        }
      }
    }
  }
}

TEST(PipelineStageTest, ATiedGptIsThatOfOneProcessAndOneBatch) {
  const Training training = WithSgd(Gpt("gpt_a").training, 20);
  const Outcome alone = TrainAlone(training, 1);
  double worst = 0;
  for (PipelineSchedule schedule : kSchedules) {
    for (int p : {2, 3, 4}) {
      ExpectEqual(TrainInPipeline(training, {p, 3, schedule}), alone,
                  /*bits=*/false, &worst);
    }
  }
  std::printf("[ distance ] tied gpt, 20 steps of sgd: %.1e\n", worst);
}

// NCCL's sends are done when the other side has come for them, and its receives
// begin when they are waited for: no stage may wait for another in a circle.
TEST(PipelineStageTest, OverNcclTheBitsAreTheSame) {
  for (const Training& training :
       {WithSgd(Gpt("gpt_b").training, 3), WithSgd(Gpt("gpt_a").training, 3)}) {
    for (PipelineSchedule schedule : kSchedules) {
      for (int p : {2, 4}) {
        PipelineSetting setting{p, 6, schedule, nullptr};
        const Outcome expected = TrainInPipeline(training, setting);
        FakeNccl nccl;
        std::barrier everybody(p);
        std::vector<std::string> ids(p);
        setting.connect = [&](std::unique_ptr<Mesh> mesh, Ops* ops) {
          NcclCommunicator::Options options;
          const int rank = mesh->rank();
          options.api = nccl.Open(std::to_string(rank));
          options.ops = ops;
          options.mesh = std::move(mesh);
          options.messages = true;
          options.timeouts.call = absl::Seconds(20);
          options.exchange =
              [&, rank](
                  std::string own) -> absl::StatusOr<std::vector<std::string>> {
            ids[rank] = std::move(own);
            everybody.arrive_and_wait();
            return ids;
          };
          auto group = NcclCommunicator::Connect(std::move(options));
          EXPECT_TRUE(group.ok()) << group.status();
          return *std::move(group);
        };
        ExpectEqual(TrainInPipeline(training, setting), expected,
                    /*bits=*/true, nullptr);
        EXPECT_EQ(nccl.aborted(), 0);
      }
    }
  }
}

// A small model with dropout between all layers.
Training WithDropout() {
  return SmallTraining(
      "sequential { linear { in: 6 out: 16 } }"
      "sequential { dropout { p: 0.3 } }"
      "sequential { residual { body { linear { in: 16 out: 16 } } body { "
      "dropout { p: 0.3 } } } } sequential { dropout { p: 0.3 } }"
      "sequential { linear { in: 16 out: 3 } }",
      {6});
}

TEST(PipelineStageTest, NormsAtTheBordersOfStagesGiveTheBitsOfAccumulation) {
  const Training of_features = SmallTraining(
      "sequential { rms_norm { features: 6 } }"
      "sequential { linear { in: 6 out: 16 } }"
      "sequential { rms_norm { features: 16 } } sequential { tanh {} }"
      "sequential { linear { in: 16 out: 3 } }",
      {6});
  const Training of_images = SmallTraining(
      "sequential { conv2d { in: 1 out: 4 kernel: 3 } }"
      "sequential { group_norm { groups: 2 features: 4 } }"
      "sequential { group_norm { groups: 4 features: 4 affine: false } }"
      "sequential { global_avg_pool {} }"
      "sequential { linear { in: 4 out: 3 } }",
      {5, 5});
  for (const Training& training : {of_features, of_images}) {
    const Outcome alone = TrainAlone(training, 4);
    for (int p : {2, 3, 5}) {
      ExpectEqual(TrainInPipeline(training, {p, 4}), alone, /*bits=*/true,
                  nullptr);
    }
  }
}

TEST(PipelineStageTest, DropoutDrawsWhatOneProcessDraws) {
  const Training training = WithDropout();
  const Outcome whole = TrainAlone(training, 1);  // one batch
  double worst = 0;
  for (int p : {2, 3, 5}) {
    ExpectEqual(TrainInPipeline(training, {p, 4}), whole, /*bits=*/false,
                &worst);
  }
}

TEST(PipelineStageTest, ActivationsInFlightAndTheTimelineAreTheSchedules) {
  const Training training = WithSgd(Cnn().training, 2);
  for (PipelineSchedule schedule : kSchedules) {
    for (int p : {1, 2, 3, 4}) {
      for (int m : {1, 2, 6}) {
        const Outcome outcome = TrainInPipeline(training, {p, m, schedule});
        for (int s = 0; s < p; ++s) {
          const auto tasks = MakePipelineTasks(schedule, s, p, m);
          size_t at = 0;
          int64_t end = 0;
          int in_flight = 0, most_in_flight = 0;
          for (const PipelineEvent& event : outcome.timelines[s]) {
            EXPECT_LE(event.begin_micros, event.end_micros);
            if (event.kind != Kind::kForward && event.kind != Kind::kBackward) {
              continue;
            }
            EXPECT_GE(event.begin_micros, end);
            end = event.end_micros;
            in_flight += event.kind == Kind::kForward ? 1 : -1;
            most_in_flight = std::max(most_in_flight, in_flight);
            ASSERT_LT(at, tasks.size());
            EXPECT_EQ(event.micro_batch, tasks[at].micro_batch);
            EXPECT_EQ(event.kind == Kind::kForward,
                      tasks[at].kind == PipelineTask::Kind::kForward);
            ++at;
          }
          EXPECT_EQ(at, tasks.size());
          EXPECT_EQ(most_in_flight, schedule == PipelineSchedule::kGpipe
                                        ? m
                                        : std::min(p - s, m));
        }
      }
    }
  }
}

TEST(PipelineStageTest, EveryGradientIsReadyOnceAndSharedOnesLast) {
  const Training training = WithSgd(Gpt("gpt_a").training, 1);
  const Outcome outcome = TrainInPipeline(training, {3, 4});
  for (int s = 0; s < 3; ++s) {
    std::vector<int> ready = outcome.ready[s];
    EXPECT_TRUE(s == 1 || ready.back() == 0) << "0.weight, of two stages";
    std::sort(ready.begin(), ready.end());
    for (size_t i = 0; i < ready.size(); ++i) {
      EXPECT_EQ(ready[i], static_cast<int>(i));
    }
  }
  EXPECT_EQ(outcome.ready[0].size() + outcome.ready[1].size() +
                outcome.ready[2].size(),
            training.initial.size() + 1);
}

TEST(PipelineStageTest, InitialWeightsAreTheWholeModels) {
  const Training training = Gpt("gpt_a").training;
  const ParameterSpecs parameters = ModelParameters(training.spec);
  const std::vector<int> bounds = StagesOf(training.spec, 3);
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  std::vector<bool> seen(parameters.size());
  for (int s = 0; s < 3; ++s) {
    const auto model = *Model::Create(training.spec, training.sample,
                                      {.ops = ops.get(),
                                       .max_rows = 1,
                                       .first_layer = bounds[s],
                                       .end_layer = bounds[s + 1]});
    for (size_t i = 0; i < model->parameters().size(); ++i) {
      const int place = PlaceOf(parameters, model->parameters()[i].name);
      EXPECT_EQ(model->parameters()[i].shape, parameters[place].shape);
      seen[place] = true;
    }
  }
  EXPECT_THAT(seen, ::testing::Each(true));
}

// Two Runs of one step, the second added to the first.
TEST(PipelineStageTest, AccumulationGoesOnOverSeveralRuns) {
  Training training = WithSgd(Gpt("gpt_a").training, 1);
  const Outcome whole = TrainInPipeline(training, {3, 4});
  std::vector<std::map<int, Floats>> gradients(3);
  RunStages(3, [&](std::unique_ptr<Mesh> side) {
    const int s = side->rank();
    const StageParts parts = MakeStage(std::move(side), training, {3, 4});
    LocalUpdates updates(parts.ops.get(), parts.model.get(), training);
    const Batch batch = MakeBatch(training, 0);
    const std::vector<MicroBatch> all = CutBatch(batch, 4);
    const double scale = 1.0 / static_cast<double>(training.rows);
    const absl::Span<const MicroBatch> parts_of_it = all;
    TRIBUTARY_EXPECT_OK(parts.stage->Run(
        {.micro_batches = parts_of_it.first(3), .scale = scale}));
    int ready = 0;
    TRIBUTARY_EXPECT_OK(
        parts.stage->Run({.micro_batches = parts_of_it.subspan(3),
                          .scale = scale,
                          .accumulate = true,
                          .gradient_ready = [&](int) { ++ready; }}));
    EXPECT_EQ(ready, static_cast<int>(parts.model->parameters().size()));
    gradients[s] = updates.Gradients();
  });
  for (auto& stage : gradients) {
    for (auto& [place, gradient] : stage) {
      EXPECT_EQ(gradient, whole.gradients[place]) << place;
    }
  }
}

TEST(PipelineStageTest, AStepWithoutSamplesMovesTheWeightsAllTheSame) {
  const Training training = WithSgd(Gpt("gpt_a").training, 1);
  RunStages(2, [&](std::unique_ptr<Mesh> side) {
    const StageParts parts = MakeStage(std::move(side), training, {2, 2});
    std::vector<int> ready;
    const auto sum = parts.stage->Run(
        {.gradient_ready = [&](int p) { ready.push_back(p); }});
    TRIBUTARY_ASSERT_OK(sum);
    EXPECT_EQ(*sum, 0);
    EXPECT_EQ(ready.size(), parts.model->parameters().size());
  });
}

// Five batches to judge; the last is short.
class TestSet {
 public:
  explicit TestSet(const Training& training) {
    for (int b = 0; b < 5; ++b) batches_.push_back(MakeBatch(training, b));
    batches_.back().rows = 1;
  }
  absl::StatusOr<EvaluationBatch> Next() {
    if (next_ == batches_.size()) return EvaluationBatch();
    const Batch& batch = batches_[next_++];
    return EvaluationBatch{.features = batch.features.data(),
                           .targets = {.labels = batch.labels.data()},
                           .rows = batch.rows};
  }

 private:
  std::vector<Batch> batches_;
  size_t next_ = 0;
};

TEST(PipelineStageTest, EvaluationIsThatOfOneProcess) {
  const Training training = WithSgd(Gpt("gpt_a").training, 1);
  const auto spec = FromText<v1::LossSpec>("cross_entropy {}");
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const auto model = *Model::Create(training.spec, training.sample,
                                    {.ops = ops.get(), .max_rows = 4});
  const LocalUpdates initial(ops.get(), model.get(), training);
  const auto loss = MakeLoss(ops.get(), training);
  TestSet all(training);
  const auto alone = EvaluateModel(ops.get(), model.get(), loss.get(), spec,
                                   [&all] { return all.Next(); });
  TRIBUTARY_ASSERT_OK(alone);
  EXPECT_EQ(alone->samples(), 17u);
  for (int p : {1, 2, 4}) {
    RunStages(p, [&](std::unique_ptr<Mesh> side) {
      const bool last = side->rank() == p - 1;
      // One micro-batch: max_rows is the batch.
      const StageParts parts = MakeStage(std::move(side), training, {p, 1});
      const LocalUpdates own(parts.ops.get(), parts.model.get(), training);
      TestSet mine(training);
      const auto part =
          parts.stage->Evaluate(spec, [&mine] { return mine.Next(); });
      TRIBUTARY_ASSERT_OK(part);
      EXPECT_EQ(part->samples(), last ? alone->samples() : 0);
      EXPECT_EQ(part->correct(), last ? alone->correct() : 0);
      EXPECT_EQ(part->loss_sum(), last ? alone->loss_sum() : 0);
    });
  }
}

}  // namespace
}  // namespace tributary::testing
