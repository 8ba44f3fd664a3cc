// SPDX-License-Identifier: Apache-2.0
// The promises of a model that is cut over ranks, beyond the numbers.
#include <gmock/gmock.h>

#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "common/layers/initializer.h"
#include "common/layers/model_parameters.h"
#include "tests/testing/soon.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/train/model/tensor_cases.h"
#include "worker/train/model/evaluator.h"

namespace tributary::testing {
namespace {

TEST(TensorParallelModelTest, ASliceStartsFromTheWholeParametersElements) {
  const std::string layers = Gpt(65, kTied, 0);
  const auto spec = FromText<v1::ModelSpec>(layers);
  TensorRanks ranks({.layers = layers, .sample_shape = {6}, .ranks = 4});
  const ParameterSpecs& parameters = ranks.whole_parameters();
  EXPECT_EQ(parameters, ModelParameters(spec));
  for (int p = 0; p < ranks.num_parameters(); ++p) {
    Floats whole(static_cast<size_t>(ranks.Size(p)));
    InitialWeights(parameters, spec, 7, p, absl::MakeSpan(whole));
    for (int r = 0; r < 4; ++r) {
      Model& model = *ranks[r].model;
      const int64_t n = model.parameters()[p].size();
      InitialWeights(parameters, spec, 7, p, model.slices()[p],
                     absl::MakeSpan(model.weight(p), n));
    }
    EXPECT_EQ(ranks.Weight(p), whole) << parameters[p].name;
  }
}

// Every rank hands out all of its parameters, whole or cut: last parameter
// first, each once.
TEST(TensorParallelModelTest, EveryGradientIsHandedOutOnceLastFirst) {
  TensorRanks ranks(
      {.layers = Gpt(65, kTied, 0), .sample_shape = {6}, .max_rows = 2});
  const Floats ids = {1, 2, 3, 64, 5, 6, 7, 8, 9, 10, 11, 12};
  const std::vector<int64_t> labels(12, 1);
  ranks.Run([&](int, TensorRank& rank) {
    const float* y = rank.model->Forward(ids.data(), 2, {});
    const auto d = rank.loss->Differentiate(y, {.labels = labels.data()}, 2, 1);
    ASSERT_TRUE(d.ok());
    std::vector<int> order;
    rank.model->Backward(*d, false, [&](int p) { order.push_back(p); });
    ASSERT_EQ(order.size(), rank.model->parameters().size());
    for (size_t i = 0; i < order.size(); ++i) {
      EXPECT_EQ(order[i], static_cast<int>(order.size() - 1 - i));
    }
  });
}

// Shoeybi et al. 2019, section 3: two all-reduces in the forward pass of a
// transformer layer and two in its backward pass, of an activation each; one
// more for the embedding and one for the head's input. An all-reduce of n
// floats over t ranks sends 2 (t - 1) / t n from each. The cross entropy
// gathers 5 floats a token.
TEST(TensorParallelModelTest, TheBytesAreMegatrons) {
  for (const int t : {2, 4}) {
    constexpr int64_t kRows = 16, kTime = 6, kDim = 24, kBlocks = 2;
    TensorRanks ranks({.layers = Gpt(65, kTied, 0),
                       .sample_shape = {kTime},
                       .max_rows = kRows,
                       .ranks = t,
                       .small_elements = 0});
    const std::vector<int64_t> labels(kRows * kTime, 3);
    ranks.Train(Floats(kRows * kTime, 1.0f), {.labels = labels.data()}, kRows,
                1);
    const int64_t n = kRows * kTime * kDim;  // a multiple of 16 t
    const int64_t sums = 4 * kBlocks + 2;
    const int64_t floats =
        sums * 2 * (t - 1) * n / t + (t - 1) * kRows * kTime * 5;
    for (int r = 0; r < t; ++r) {
      EXPECT_EQ(ranks[r].communicator->bytes_sent(), 4u * floats);
      EXPECT_EQ(ranks[r].communicator->bytes_received(), 4u * floats);
    }
  }
}

// Sums of the same parts on every rank, as common/evaluation wants them.
v1::EvaluationPart Evaluate(Ops* ops, Model* model, Loss* loss,
                            const Data& data, int64_t rows) {
  bool given = false;
  auto part = EvaluateModel(
      ops, model, loss, FromText<v1::LossSpec>("cross_entropy {}"),
      [&]() -> absl::StatusOr<EvaluationBatch> {
        if (std::exchange(given, true)) return EvaluationBatch();
        return EvaluationBatch{.features = data.features.data(),
                               .targets = data.targets(),
                               .rows = rows};
      });
  EXPECT_TRUE(part.ok()) << part.status();
  return part.ok() ? *part : v1::EvaluationPart();
}

TEST(TensorParallelModelTest, CutLogitsAreJudgedAsWholeOnes) {
  constexpr int64_t kRows = 50;
  const Case c = {"", Gpt(65, kTied, 0), {6}, 65, true};
  CpuModel whole(c.layers, c.shape, kRows);
  TensorRanks ranks({.layers = c.layers,
                     .sample_shape = c.shape,
                     .max_rows = kRows,
                     .ranks = 4});
  Data data = DataOf(c, kRows, whole->output_size(), 1);
  // Half of the labels are what the model would say.
  const Floats logits = whole.Forward(data.features, kRows);
  for (size_t r = 0; r < data.labels.size(); r += 2) {
    const auto row = logits.begin() + static_cast<int64_t>(r) * 65;
    data.labels[r] = std::max_element(row, row + 65) - row;
  }
  const auto loss = *Loss::Create(
      FromText<v1::LossSpec>("cross_entropy {}"),
      {.ops = &whole.ops(), .max_rows = kRows, .outputs = 65, .positions = 6});
  const v1::EvaluationPart expected =
      Evaluate(&whole.ops(), &*whole, loss.get(), data, kRows);
  EXPECT_GE(expected.correct(), kRows * 6u / 2);
  ranks.Run([&](int, TensorRank& rank) {
    const v1::EvaluationPart part = Evaluate(rank.ops.get(), rank.model.get(),
                                             rank.loss.get(), data, kRows);
    EXPECT_EQ(part.samples(), expected.samples());
    EXPECT_EQ(part.values(), expected.values());
    EXPECT_EQ(part.correct(), expected.correct());
    EXPECT_NEAR(part.loss_sum(), expected.loss_sum(),
                1e-6 * expected.loss_sum());
  });
}

// The first of equal logits is the answer, on whichever rank it stands; a NaN
// anywhere makes the row wrong.
TEST(TensorParallelModelTest, EqualLogitsAndNaNCountAsInOneProcess) {
  const std::string layers = Sequential({Linear(64, 64, false)});
  TensorRanks ranks(
      {.layers = layers, .sample_shape = {64}, .max_rows = 4, .ranks = 2});
  Floats identity(64 * 64, 0.0f);
  for (int i = 0; i < 64; ++i) identity[i * 65] = 1;
  ranks.SetWeight(0, identity);
  Data data;
  data.features = Floats(4 * 64, -1.0f);
  const auto logit = [&](int row, int c) -> float& {
    return data.features[row * 64 + c];
  };
  logit(0, 3) = logit(0, 40) = 5;  // right is 3
  logit(1, 3) = logit(1, 40) = 5;
  logit(2, 40) = 5;  // right is 40
  logit(3, 40) = 5;
  logit(3, 3) = NAN;
  data.labels = {3, 40, 40, 40};
  ranks.Run([&](int, TensorRank& rank) {
    EXPECT_EQ(
        Evaluate(rank.ops.get(), rank.model.get(), rank.loss.get(), data, 4)
            .correct(),
        2u);
  });
}

TEST(TensorParallelModelTest, ALabelOfNoClassIsRefusedByEveryRank) {
  TensorRanks ranks({.layers = Sequential({Linear(4, 64)}),
                     .sample_shape = {4},
                     .max_rows = 1,
                     .ranks = 2});
  const Floats x(4, 1.0f);
  const std::vector<int64_t> labels = {64};
  ranks.Run([&](int, TensorRank& rank) {
    const float* y = rank.model->Forward(x.data(), 1, {});
    const auto d = rank.loss->Differentiate(y, {.labels = labels.data()}, 1, 1);
    EXPECT_EQ(d.status().message(),
              "cross_entropy wants labels from 0 to 63, one for each output of "
              "the model; got 64");
  });
}

TEST(TensorParallelModelTest, OtherLossesTakeNoCutLogits) {
  TensorRanks ranks(
      {.layers = Sequential({Linear(4, 64)}), .sample_shape = {4}});
  ASSERT_NE(ranks.model().output_cut().group, nullptr);
  const auto loss = Loss::Create(FromText<v1::LossSpec>("mse {}"),
                                 {.ops = ranks[0].ops.get(),
                                  .max_rows = 1,
                                  .outputs = 32,
                                  .cut = ranks.model().output_cut()});
  EXPECT_EQ(loss.status().message(),
            "only cross_entropy takes logits that are cut by classes");
}

// Rank 1 leaves after its first forward pass, when all wait for it: everybody
// says who is missing, and no gradient of the void step is handed out.
TEST(TensorParallelModelTest, ARankThatLeavesIsNamedByTheOthers) {
  TensorRanks ranks({.layers = Gpt(65, kTied, 0),
                     .sample_shape = {6},
                     .max_rows = 2,
                     .ranks = 4,
                     .timeout = absl::Seconds(60)});
  const Floats ids(12, 1.0f);
  const std::vector<int64_t> labels(12, 1);
  ranks.Run([&](int r, TensorRank& rank) {
    const float* y = rank.model->Forward(ids.data(), 2, {});
    auto d = rank.loss->Differentiate(y, {.labels = labels.data()}, 2, 1);
    TRIBUTARY_ASSERT_OK(d);
    if (r == 1) {
      const absl::Time deadline = absl::Now() + testing::kSoon;
      for (const int other : {0, 2, 3}) {
        while (ranks[other].communicator->waiting_for() != 1) {
          ASSERT_LT(absl::Now(), deadline);
          std::this_thread::yield();
        }
      }
      rank.communicator->Abort("the data are gone");
      rank.model->Backward(*d, false, nullptr);
      EXPECT_THAT(rank.model->status(),
                  StatusIs(absl::StatusCode::kCancelled, "the data are gone"));
      rank.communicator.reset();
      return;
    }
    int handed_out = 0;
    rank.model->Backward(*d, false, [&](int) { ++handed_out; });
    EXPECT_LT(handed_out, static_cast<int>(rank.model->parameters().size()));
    EXPECT_EQ(rank.model->status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(rank.model->status().message()),
                ::testing::HasSubstr("tensor-parallel rank " +
                                     std::to_string(r) + " of 4"));
    EXPECT_THAT(std::string(rank.model->status().message()),
                ::testing::ContainsRegex("rank 1 is (gone|lost, says)"));
    // From then on every call reports this at once.
    rank.model->Forward(ids.data(), 2, {});
    d = rank.loss->Differentiate(y, {.labels = labels.data()}, 2, 1);
    EXPECT_EQ(d.status().code(), absl::StatusCode::kUnavailable);
    int more = 0;
    rank.model->Backward(y, false, [&](int) { ++more; });
    EXPECT_EQ(more, 0);
  });
}

// A rank that is stuck rather than gone.
TEST(TensorParallelModelTest, ARankThatDoesNotComeIsNamedAfterTheTimeout) {
  TensorRanks ranks({.layers = Sequential({Linear(4, 8), Linear(8, 4)}),
                     .sample_shape = {4},
                     .ranks = 2,
                     .timeout = absl::Milliseconds(20)});
  const Floats x(4, 1.0f);
  ranks.Run([&](int r, TensorRank& rank) {
    if (r == 1) return;
    rank.model->Forward(x.data(), 1, {});
    EXPECT_EQ(rank.model->status().code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(rank.model->status().message(),
              "tensor-parallel rank 0 of 2, summing: rank 1 did not come for "
              "20ms");
  });
}

}  // namespace
}  // namespace tributary::testing
