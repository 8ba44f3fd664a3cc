// SPDX-License-Identifier: Apache-2.0
// The golden group train_mlp at the level of the model: 64-32-10 on digits, 50
// steps of 32 rows, against PyTorch in float64. Data-parallel ranks are played
// one after the other; the sums are those of the servers' loops.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/optimizer/optimizer.h"
#include "tests/unit/kernels/golden_score.h"
#include "tests/unit/worker/train/model/model_fixture.h"
#include "worker/train/model/loss.h"

namespace tributary::testing {
namespace {

using Cases = std::map<std::string, GoldenCase>;

constexpr int64_t kBatch = 32;
constexpr int64_t kFeatures = 64;
constexpr char kLayers[] =
    "sequential { linear { in: 64 out: 32 } } sequential { relu {} }"
    "sequential { linear { in: 32 out: 10 } }";
// Golden names of the parameters, in forward order.
const std::vector<std::string> kNames = {"w0", "b0", "w1", "b1"};

OptimizerOptions OptionsOf(const GoldenCase& c) {
  OptimizerOptions options;
  options.kind = c.Text("opt", "");
  options.learning_rate = c.Number("lr", 0);
  options.momentum = c.Number("momentum", 0);
  options.nesterov = c.Flag("nesterov");
  options.weight_decay = c.Number("weight_decay", 0);
  options.epsilon = c.Number("eps", options.kind == "adagrad" ? 1e-10 : 1e-8);
  return options;
}

// How a step's rows are shared: rank r gets shards[r] of them, each in
// `micro_batches` equal parts, and the ranks' means are weighted.
struct Sharing {
  std::vector<int64_t> shards = {kBatch};
  int64_t micro_batches = 1;
  bool by_samples = true;  // else every rank counts the same
};

class OneStep {
 public:
  OneStep(const Cases& cases, const GoldenCase& c, Sharing sharing)
      : case_(c),
        sharing_(std::move(sharing)),
        data_(cases.at("shared").Tensor("data").Floats()),
        labels_(cases.at("shared").Tensor("label").Integers()),
        order_(cases.at("shared").Tensor("order").Integers()),
        model_(kLayers, {kFeatures}, kBatch),
        optimizer_(OptionsOf(c)) {
    for (float& x : data_) x /= 16;
    loss_ = *Loss::Create(FromText<v1::LossSpec>("cross_entropy {}"),
                          {&model_.ops(), kBatch, 10});
    for (int p = 0; p < 4; ++p) {
      const Floats initial =
          cases.at("shared").Tensor("init." + kNames[p]).Floats();
      model_.SetWeight(p, initial);
      states_.emplace_back(optimizer_.state_names().size(),
                           Floats(initial.size()));
      optimizer_.InitializeState(model_.Size(p), initial.data(),
                                 StateAt(p).data());
    }
  }

  // Makes optimizer step `step` (from 0). Returns the loss before it,
  // averaged like the gradient.
  double Step(int64_t step) {
    const int64_t rows = kBatch * sharing_.micro_batches;
    const int64_t* row = order_.data() + step * rows;
    std::vector<std::vector<Floats>> contributions;  // by rank
    Floats weights;
    double loss = 0;
    for (const int64_t shard : sharing_.shards) {
      const int64_t samples = shard * sharing_.micro_batches;
      double rank_loss = 0;
      for (int64_t m = 0; m < sharing_.micro_batches; ++m) {
        rank_loss +=
            MicroBatch(row, shard, 1.0 / samples, /*accumulate=*/m > 0);
        row += shard;
      }
      contributions.push_back(model_.Gradients());
      const double weight = sharing_.by_samples
                                ? static_cast<double>(samples) / rows
                                : 1.0 / sharing_.shards.size();
      weights.push_back(static_cast<float>(weight));
      loss += weight * rank_loss / samples;
    }
    Average(contributions, weights);
    Update(step);
    return loss;
  }

  const std::vector<Floats>& gradients() const { return gradients_; }
  double gradient_norm() const { return gradient_norm_; }
  Floats Weight(int p) {
    return Floats(model_->weight(p), model_->weight(p) + model_.Size(p));
  }

 private:
  double MicroBatch(const int64_t* rows, int64_t count, double scale,
                    bool accumulate) {
    Floats features;
    std::vector<int64_t> labels;
    for (int64_t r = 0; r < count; ++r) {
      const auto begin = data_.begin() + rows[r] * kFeatures;
      features.insert(features.end(), begin, begin + kFeatures);
      labels.push_back(labels_[rows[r]]);
    }
    const float* logits =
        model_->Forward(features.data(), count, {.training = true});
    const auto d_logits =
        loss_->Differentiate(logits, {.labels = labels.data()}, count, scale);
    EXPECT_TRUE(d_logits.ok()) << d_logits.status();
    model_->Backward(*d_logits, accumulate, nullptr);
    return *loss_->Sum();
  }

  void Average(const std::vector<std::vector<Floats>>& contributions,
               const Floats& weights) {
    gradients_ = contributions[0];
    double squares = 0;
    for (int p = 0; p < 4; ++p) {
      std::vector<const float*> parts;
      for (const auto& rank : contributions) parts.push_back(rank[p].data());
      model_.ops().WeightedSum(model_.Size(p), static_cast<int>(parts.size()),
                               parts.data(), weights.data(),
                               gradients_[p].data());
      squares += Squares(gradients_[p]);
    }
    gradient_norm_ = std::sqrt(squares);
  }

  void Update(int64_t step) {
    // torch.nn.utils.clip_grad_norm_
    const double clip = case_.Number("clip", 0);
    const double scale =
        clip > 0 ? std::min(1.0, clip / (gradient_norm_ + 1e-6)) : 1;
    const double rate = case_.Has("lr") ? case_.Tensor("lr").Doubles()[step]
                                        : optimizer_.options().learning_rate;
    const OptimizerStep scalars = optimizer_.Prepare(step + 1, rate, scale);
    for (int p = 0; p < 4; ++p) {
      const int64_t n = model_.Size(p);
      float* weight = model_->weight(p);
      if (!optimizer_.makes_directions()) {
        model_.ops().OptimizerUpdate(scalars, n, gradients_[p].data(), weight,
                                     weight, StateAt(p).data());
        continue;
      }
      Floats direction(static_cast<size_t>(n));
      model_.ops().OptimizerDirection(scalars, n, gradients_[p].data(), weight,
                                      direction.data(), StateAt(p).data());
      const double move = optimizer_.DirectionRate(
          {.learning_rate = rate,
           .weight_norm = std::sqrt(Squares(Weight(p))),
           .direction_norm = std::sqrt(Squares(direction))});
      model_.ops().ApplyDirection(n, static_cast<float>(move),
                                  scalars.weight_scale, direction.data(),
                                  weight, weight);
    }
  }

  double Squares(const Floats& x) {
    double squares = 0;
    const int64_t n = static_cast<int64_t>(x.size());
    model_.ops().GrainSquares(n, /*grain=*/n, x.data(), &squares);
    return squares;
  }

  std::vector<float*> StateAt(int p) {
    std::vector<float*> pointers;
    for (Floats& state : states_[p]) pointers.push_back(state.data());
    return pointers;
  }

  const GoldenCase& case_;
  const Sharing sharing_;
  Floats data_;
  const std::vector<int64_t> labels_;
  const std::vector<int64_t> order_;
  CpuModel model_;
  std::unique_ptr<Loss> loss_;
  Optimizer optimizer_;
  std::vector<std::vector<Floats>> states_;  // by parameter
  std::vector<Floats> gradients_;            // of the last step, averaged
  double gradient_norm_ = 0;
};

// Runs a case and compares all that the files know of it; `prefix` chooses the
// expectations of several workers.
void Compare(const Cases& cases, const std::string& id, const Sharing& sharing,
             const std::string& prefix, GoldenScore* score) {
  const GoldenCase& c = cases.at(id);
  score->BeginCase(prefix + id);
  OneStep training(cases, c, sharing);
  const int64_t steps = c.Tensor(prefix + "loss").size();
  std::vector<double> losses, norms;
  for (int64_t step = 0; step < steps; ++step) {
    losses.push_back(training.Step(step));
    norms.push_back(training.gradient_norm());
    if (step > 0) continue;
    for (int p = 0; p < 4; ++p) {
      const std::string name = "grad0." + kNames[p];
      if (c.Has(name)) score->Expect(c, name, training.gradients()[p]);
    }
  }
  score->Expect(c, prefix + "loss", losses);
  if (c.Has("grad_norm")) score->Expect(c, "grad_norm", norms);
  for (int p = 0; p < 4; ++p) {
    score->Expect(c, prefix + "final." + kNames[p], training.Weight(p));
  }
}

TEST(GoldenModelTest, EveryOptimizerTrainsAsInPyTorch) {
  const Cases cases = ReadGoldenGroup("train_mlp");
  GoldenScore score("train_mlp, one worker");
  for (const std::string id :
       {"sgd", "momentum", "nesterov_wd", "adam", "adamw_clip_warmcos", "lamb",
        "adagrad", "rmsprop"}) {
    Compare(cases, id, {}, "", &score);
  }
  EXPECT_EQ(score.cases(), 8);
}

TEST(GoldenModelTest, AccumulationEqualsALargerBatch) {
  const Cases cases = ReadGoldenGroup("train_mlp");
  GoldenScore score("train_mlp, accumulation");
  Compare(cases, "accumulate2", {.micro_batches = 2}, "", &score);
}

TEST(GoldenModelTest, SeveralWorkersEqualOne) {
  const Cases cases = ReadGoldenGroup("train_mlp");
  GoldenScore score("train_mlp, 2 and 4 workers");
  for (const std::string id : {"sgd", "adam"}) {
    Compare(cases, id, {.shards = {16, 16}}, "workers2.", &score);
    Compare(cases, id, {.shards = {8, 8, 8, 8}}, "workers4.", &score);
  }
}

TEST(GoldenModelTest, UnevenShardsCountBySamplesOrByRank) {
  const Cases cases = ReadGoldenGroup("train_mlp");
  GoldenScore score("train_mlp, uneven shards");
  Compare(cases, "uneven3_weighted", {.shards = {11, 11, 10}}, "", &score);
  Compare(cases, "uneven3_unweighted",
          {.shards = {11, 11, 10}, .by_samples = false}, "", &score);
}

}  // namespace
}  // namespace tributary::testing
