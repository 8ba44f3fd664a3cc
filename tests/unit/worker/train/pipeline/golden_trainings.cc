// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/worker/train/pipeline/golden_trainings.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tributary::testing {
namespace {

void SetInitial(const GoldenCase& inputs, GoldenTraining* g) {
  for (const std::string& name : g->names) {
    g->training.initial.push_back(inputs.Tensor("init." + name).Floats());
  }
  g->training.steps = static_cast<int>(g->golden.Tensor("loss").size());
}

// Rows of a table of pixels from 0 to 16 in `order`, step after step.
auto FillImages(std::vector<float> pixels, std::vector<int64_t> labels,
                std::vector<int64_t> order) {
  for (float& x : pixels) x /= 16;
  return [=](int step, Batch* batch) {
    const int64_t size = static_cast<int64_t>(pixels.size() / labels.size());
    batch->features.Resize(batch->rows * size);
    for (int64_t r = 0; r < batch->rows; ++r) {
      const int64_t row = order[step * batch->rows + r];
      std::copy_n(pixels.begin() + row * size, size,
                  batch->features.data() + r * size);
      batch->labels.push_back(labels[row]);
    }
  };
}

std::string GptLayers(const GoldenCase& c, std::vector<std::string>* names) {
  const bool qkv_bias = c.Flag("qkv_bias");
  std::string layers = absl::StrCat(
      "sequential { embedding { tokens: 65 dim: 32 } } sequential "
      "{ position_embedding { length: ",
      c.Text("T", ""), " dim: 32 } }");
  *names = {"wte", "wpe"};
  for (int i = 0; i < 2; ++i) {
    absl::StrAppend(
        &layers,
        "sequential { residual { body { layernorm { features: 32 } } body { "
        "attention { dim: 32 heads: 2 causal: true qkv_bias: ",
        qkv_bias ? "true" : "false",
        " } } } } sequential { residual { body { layernorm { features: 32 } } "
        "body { linear { in: 32 out: 128 } } body { gelu { approximate: ",
        c.Text("gelu", "") == "tanh" ? "TANH" : "NONE",
        " } } body { linear { in: 128 out: 32 } } } }");
    for (const char* name :
         {"ln1.g", "ln1.b", "attn.w_in", "attn.b_in", "attn.w_out",
          "attn.b_out", "ln2.g", "ln2.b", "fc1.w", "fc1.b", "fc2.w", "fc2.b"}) {
      if (!qkv_bias && std::string(name) == "attn.b_in") continue;
      names->push_back(absl::StrCat("h", i, ".", name));
    }
  }
  names->insert(names->end(), {"lnf.g", "lnf.b"});
  layers += "sequential { layernorm { features: 32 } } ";
  if (c.Flag("tied")) {
    return layers + "sequential { tied_linear { to: \"0.weight\" } }";
  }
  names->push_back("head.w");
  return layers + "sequential { linear { in: 32 out: 65 bias: false } }";
}

}  // namespace

GoldenTraining Mlp() {
  const auto cases = ReadGoldenGroup("train_mlp");
  const GoldenCase& shared = cases.at("shared");
  GoldenTraining g{cases.at("sgd"), {"w0", "b0", "w1", "b1"}, {}};
  g.training.spec = FromText<v1::ModelSpec>(
      "sequential { linear { in: 64 out: 32 } } sequential { relu {} }"
      "sequential { linear { in: 32 out: 10 } }");
  g.training.sample = {64};
  g.training.outputs = 10;
  g.training.rows = 32;
  g.training.optimizer.learning_rate = g.golden.Number("lr", 0);
  g.training.fill = FillImages(shared.Tensor("data").Floats(),
                               shared.Tensor("label").Integers(),
                               shared.Tensor("order").Integers());
  SetInitial(shared, &g);
  return g;
}

GoldenTraining Cnn() {
  GoldenTraining g{ReadGoldenGroup("train_cnn").at("cnn"),
                   {"c1.w", "c1.b", "c2.w", "c2.b", "fc.w", "fc.b"},
                   {}};
  g.training.spec = FromText<v1::ModelSpec>(
      "sequential { conv2d { in: 1 out: 4 kernel: 3 padding: 1 } }"
      "sequential { relu {} } sequential { max_pool { kernel: 2 } }"
      "sequential { conv2d { in: 4 out: 8 kernel: 3 padding: 1 } }"
      "sequential { relu {} } sequential { max_pool { kernel: 2 } }"
      "sequential { flatten {} } sequential { linear { in: 32 out: 10 } }");
  g.training.sample = {1, 8, 8};
  g.training.outputs = 10;
  g.training.rows = 16;
  g.training.optimizer.learning_rate = g.golden.Number("lr", 0);
  g.training.optimizer.momentum = g.golden.Number("momentum", 0);
  std::vector<int64_t> order(240);
  std::iota(order.begin(), order.end(), 0);
  g.training.fill =
      FillImages(g.golden.Tensor("data").Floats(),
                 g.golden.Tensor("label").Integers(), std::move(order));
  SetInitial(g.golden, &g);
  return g;
}

GoldenTraining Gpt(const std::string& id) {
  GoldenTraining g{ReadGoldenGroup("train_gpt").at(id), {}, {}};
  const int64_t time = static_cast<int64_t>(g.golden.Number("T", 0));
  g.training.spec = FromText<v1::ModelSpec>(GptLayers(g.golden, &g.names));
  g.training.sample = {time};
  g.training.outputs = 65;
  g.training.positions = time;
  g.training.rows = static_cast<int64_t>(g.golden.Number("B", 0));
  g.training.optimizer = OptimizerOf("adamw", g.golden.Number("lr", 0));
  g.training.optimizer.weight_decay = g.golden.Number("wd", 0);
  g.training.optimizer.beta1 = g.golden.Numbers("betas")[0];
  g.training.optimizer.beta2 = g.golden.Numbers("betas")[1];
  g.training.learning_rate = [rates = g.golden.Tensor("lr").Doubles()](
                                 int step) { return rates[step]; };
  g.training.fill = [ids = g.golden.Tensor("idx").Integers(),
                     targets = g.golden.Tensor("target").Integers(),
                     time](int step, Batch* batch) {
    const int64_t size = batch->rows * time;
    batch->features.Resize(size);
    std::copy_n(ids.begin() + step * size, size, batch->features.data());
    batch->labels.assign(targets.begin() + step * size,
                         targets.begin() + (step + 1) * size);
  };
  SetInitial(g.golden, &g);
  return g;
}

Training WithSgd(Training training, int steps) {
  training.optimizer = OptimizerOf("sgd", 0.1);
  training.learning_rate = nullptr;
  training.steps = steps;
  return training;
}

}  // namespace tributary::testing
