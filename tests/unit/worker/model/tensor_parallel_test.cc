// Models whose layers are cut over ranks against the same models whole.
#include <gmock/gmock.h>

#include <cmath>

#include "common/job/model_parameters.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/model/tensor_ranks.h"
#include "worker/model/evaluator.h"
#include "worker/model/initializer.h"

namespace tributary::testing {
namespace {

// The largest difference relative to the largest expected number.
double Error(const Floats& got, const Floats& expected) {
  EXPECT_EQ(got.size(), expected.size());
  if (got.size() != expected.size()) return INFINITY;
  double largest = 1e-12, error = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_FALSE(std::isnan(got[i]));
    largest = std::max(largest, std::abs(double{expected[i]}));
    error = std::max(error, std::abs(double{got[i]} - double{expected[i]}));
  }
  return error / largest;
}

// float32 products whose sums are grouped otherwise.
constexpr double kTolerance = 4e-6;

std::string Linear(int64_t in, int64_t out, bool bias = true) {
  return "linear { in: " + std::to_string(in) + " out: " + std::to_string(out) +
         (bias ? " }" : " bias: false }");
}

std::string Sequential(const std::vector<std::string>& layers) {
  std::string text;
  for (const std::string& layer : layers)
    text += "sequential { " + layer + " }";
  return text;
}

std::string Gpt(int64_t vocabulary, const std::string& head, double dropout) {
  const std::string drop =
      "body { dropout { p: " + std::to_string(dropout) + " } }";
  std::vector<std::string> layers = {
      "embedding { tokens: " + std::to_string(vocabulary) + " dim: 24 }",
      "position_embedding { length: 6 dim: 24 }"};
  for (int block = 0; block < 2; ++block) {
    layers.push_back(
        "residual { body { layernorm { features: 24 } } body { attention { "
        "dim: 24 heads: 4 causal: true } }" +
        drop + "}");
    layers.push_back("residual { body { layernorm { features: 24 } } body {" +
                     Linear(24, 50) + "} body { gelu {} }" + drop + "body {" +
                     Linear(50, 24) + "}" + drop + "}");
  }
  layers.push_back("layernorm { features: 24 }");
  layers.push_back(head);
  return Sequential(layers);
}

constexpr char kTied[] = "tied_linear { to: \"0.weight\" }";

struct Case {
  std::string name;
  std::string layers;
  Shape shape;
  int64_t classes;  // of labels
  bool tokens = false;
  std::string loss = "cross_entropy {}";
};

// Every way of cutting, with sizes that two and four ranks don't divide.
std::vector<Case> Cases() {
  return {
      {"pair",
       Sequential(
           {Linear(9, 35), "dropout { p: 0.3 }", "silu {}", Linear(35, 6)}),
       {9},
       6},
      {"two pairs, between them sequences",
       Sequential({Linear(9, 33), "relu {}", Linear(33, 8), "tanh {}",
                   Linear(8, 21), "dropout { p: 0.5 }", Linear(21, 3)}),
       {5, 9},
       3},
      {"gathered, then whole",
       Sequential({Linear(9, 65), "layernorm { features: 65 }", Linear(65, 7)}),
       {4, 9},
       7},
      {"a head that stays cut",
       Sequential({"layernorm { features: 9 }", Linear(9, 67)}),
       {9},
       67},
      {"smoothed labels",
       Sequential({"layernorm { features: 9 }", Linear(9, 67)}),
       {3, 9},
       67,
       false,
       "cross_entropy { label_smoothing: 0.2 }"},
      {"images",
       Sequential({"conv2d { in: 1 out: 3 kernel: 3 }", "relu {}",
                   "max_pool { kernel: 2 }", "flatten {}", Linear(27, 18),
                   "relu {}", "dropout { p: 0.4 }", Linear(18, 5)}),
       {1, 8, 8},
       5},
      {"tied transformer", Gpt(65, kTied, 0.2), {6}, 65, true},
      {"transformer with a head of its own",
       Gpt(66, Linear(24, 66, false), 0.1),
       {6},
       66,
       true},
      {"numbers",
       Sequential({Linear(9, 64), "tanh {}"}),
       {9},
       0,
       false,
       "mse {}"},
  };
}

struct Data {
  Floats features;
  std::vector<int64_t> labels;
  Floats values;

  LossTargets targets() const {
    return {.labels = labels.empty() ? nullptr : labels.data(),
            .values = values.empty() ? nullptr : values.data()};
  }
};

Data DataOf(const Case& c, int64_t rows, int64_t outputs, uint64_t seed) {
  Data data;
  data.features = Noise(rows * NumElements(c.shape), seed);
  if (c.classes == 0) {
    data.values = Noise(rows * outputs, seed + 1);
    return data;
  }
  if (c.tokens) {
    for (float& x : data.features) {
      x = std::floor((x + 1) / 2 * static_cast<float>(c.classes));
    }
  }
  const int64_t positions = outputs / c.classes;
  for (const float x : Noise(rows * positions, seed + 1)) {
    data.labels.push_back(std::min(
        c.classes - 1,
        static_cast<int64_t>((x + 1) / 2 * static_cast<float>(c.classes))));
  }
  return data;
}

class TensorParallelTest : public ::testing::TestWithParam<int> {};

TEST_P(TensorParallelTest, OutputsLossAndGradientsAreThoseOfOneProcess) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    constexpr int64_t kRows = 7;
    CpuModel whole(c.layers, c.shape, kRows);
    TensorRanks ranks({.layers = c.layers,
                       .sample_shape = c.shape,
                       .max_rows = kRows,
                       .ranks = GetParam(),
                       .loss = c.loss});
    const int64_t outputs = whole->output_shape().back();
    const auto loss =
        *Loss::Create(FromText<v1::LossSpec>(c.loss),
                      {.ops = &whole.ops(),
                       .max_rows = kRows,
                       .outputs = outputs,
                       .positions = whole->output_size() / outputs});
    ASSERT_EQ(ranks.num_parameters(), whole.num_parameters());
    EXPECT_EQ(ranks.model().num_tokens(), whole->num_tokens());
    // Twice: with dropout of another step, and added to the first.
    for (const int64_t step : {3, 4}) {
      const ForwardContext context = {
          .training = true, .step = step, .first_row = 1, .row_stride = 2};
      const int64_t rows = step == 3 ? kRows : kRows - 2;
      const Data data = DataOf(c, rows, whole->output_size(), step);
      const Floats logits = whole.Forward(data.features, rows, context);
      const auto d =
          loss->Differentiate(logits.data(), data.targets(), rows, 1.0 / kRows);
      ASSERT_TRUE(d.ok()) << d.status();
      whole->Backward(*d, step == 4, nullptr);
      const TensorRanks::Step got = ranks.Train(
          data.features, data.targets(), rows, 1.0 / kRows, context, step == 4);
      EXPECT_LT(Error(got.logits, logits), kTolerance);
      EXPECT_NEAR(got.loss, *loss->Sum(), 1e-6 * *loss->Sum());
      for (int p = 0; p < whole.num_parameters(); ++p) {
        EXPECT_EQ(ranks.model().whole_parameters()[p], whole->parameters()[p]);
        EXPECT_LT(Error(ranks.Gradient(p), whole.Gradient(p)), kTolerance)
            << whole->parameters()[p].name;
      }
    }
  }
}

TEST_P(TensorParallelTest, TwentyStepsOfSgdEndAtTheSameWeights) {
  constexpr int64_t kRows = 8;
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    CpuModel whole(c.layers, c.shape, kRows);
    TensorRanks ranks({.layers = c.layers,
                       .sample_shape = c.shape,
                       .max_rows = kRows,
                       .ranks = GetParam(),
                       .loss = c.loss});
    const int64_t outputs = whole->output_shape().back();
    const auto loss =
        *Loss::Create(FromText<v1::LossSpec>(c.loss),
                      {.ops = &whole.ops(),
                       .max_rows = kRows,
                       .outputs = outputs,
                       .positions = whole->output_size() / outputs});
    for (int p = 0; p < whole.num_parameters(); ++p) {
      Floats initial = Noise(whole.Size(p), static_cast<uint64_t>(p) + 100);
      for (float& w : initial) w *= 0.2f;
      whole.SetWeight(p, initial);
      ranks.SetWeight(p, initial);
    }
    const auto descend = [&](Ops& ops, Model& model) {
      for (size_t i = 0; i < model.parameters().size(); ++i) {
        const int p = static_cast<int>(i);
        ops.ApplyDirection(model.parameters()[i].size(), 0.1f,
                           model.gradient(p), model.weight(p), model.weight(p));
      }
    };
    for (int64_t step = 0; step < 20; ++step) {
      const ForwardContext context = {.training = true, .step = step};
      const Data data = DataOf(c, kRows, whole->output_size(), step);
      const Floats logits = whole.Forward(data.features, kRows, context);
      const auto d = loss->Differentiate(logits.data(), data.targets(), kRows,
                                         1.0 / kRows);
      ASSERT_TRUE(d.ok()) << d.status();
      whole->Backward(*d, false, nullptr);
      descend(whole.ops(), *whole);
      ranks.Train(data.features, data.targets(), kRows, 1.0 / kRows, context);
      for (int r = 0; r < ranks.size(); ++r) {
        descend(*ranks[r].ops, *ranks[r].model);
      }
    }
    for (int p = 0; p < whole.num_parameters(); ++p) {
      const float* weight = whole->weight(p);
      EXPECT_LT(Error(ranks.Weight(p), Floats(weight, weight + whole.Size(p))),
                1e-5)
          << whole->parameters()[p].name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, TensorParallelTest, ::testing::Values(1, 2, 4));

TEST(TensorParallelModelTest, ASliceStartsFromTheWholeParametersElements) {
  const std::string layers = Gpt(65, kTied, 0);
  const auto spec = FromText<v1::ModelSpec>(layers);
  TensorRanks ranks({.layers = layers, .sample_shape = {6}, .ranks = 4});
  const ParameterSpecs& parameters = ranks.model().whole_parameters();
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

// Parameters that are not cut are handed out by all ranks, the others by each:
// last parameter first, each once.
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

// Sums of the same parts on every rank, as common/metrics wants them.
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
      const absl::Time deadline = absl::Now() + absl::Seconds(30);
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
    // From then on everything says so at once.
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
