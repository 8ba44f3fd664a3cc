// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/worker/train/model/tensor_ranks.h"
#include "worker/train/model/loss.h"

// Models in which layers are cut over ranks in every way, and data for them.
namespace tributary::testing {

// The largest difference relative to the largest expected number.
inline double Error(const Floats& got, const Floats& expected) {
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
inline constexpr double kTolerance = 4e-6;

inline std::string Linear(int64_t in, int64_t out, bool bias = true) {
  return "linear { in: " + std::to_string(in) + " out: " + std::to_string(out) +
         (bias ? " }" : " bias: false }");
}

inline std::string Sequential(const std::vector<std::string>& layers) {
  std::string text;
  for (const std::string& layer : layers)
    text += "sequential { " + layer + " }";
  return text;
}

inline std::string Gpt(int64_t vocabulary, const std::string& head,
                       double dropout) {
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

inline constexpr char kTied[] = "tied_linear { to: \"0.weight\" }";

struct Case {
  std::string name;
  std::string layers;
  Shape shape;
  int64_t classes;  // of labels
  bool tokens = false;
  std::string loss = "cross_entropy {}";
};

// The weights 0, 0.3, ..., 2.4, and again.
inline std::string WeightedLoss(int classes) {
  std::string loss = "cross_entropy { label_smoothing: 0.2 ";
  for (int c = 0; c < classes; ++c) {
    loss += "class_weights: " + std::to_string(0.3 * (c % 9)) + " ";
  }
  return loss + "}";
}

// Every way of cutting, with sizes that two and four ranks don't divide.
inline std::vector<Case> Cases() {
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
      {"gathered, then a root mean square",
       Sequential({Linear(9, 65), "rms_norm { features: 65 }", Linear(65, 7)}),
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
      {"smoothed labels of weighted classes",
       Sequential({"layernorm { features: 9 }", Linear(9, 67)}),
       {3, 9},
       67,
       false,
       WeightedLoss(67)},
      {"images",
       Sequential({"conv2d { in: 1 out: 3 kernel: 3 }", "relu {}",
                   "max_pool { kernel: 2 }", "flatten {}", Linear(27, 18),
                   "relu {}", "dropout { p: 0.4 }", Linear(18, 5)}),
       {1, 8, 8},
       5},
      {"images in groups of channels",
       Sequential({"conv2d { in: 1 out: 4 kernel: 3 }",
                   "group_norm { groups: 2 features: 4 }", "relu {}",
                   "flatten {}", Linear(144, 18), "silu {}", Linear(18, 64),
                   "group_norm { groups: 4 features: 64 }", Linear(64, 5)}),
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

inline Data DataOf(const Case& c, int64_t rows, int64_t outputs,
                   uint64_t seed) {
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

}  // namespace tributary::testing
