// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/testing/golden.h"

namespace tributary::testing {

inline std::string GptResidual(const std::string& body) {
  return "sequential { residual { " + body + " } }";
}

// A block as this project writes it: two residuals.
inline std::string GptBlock(int64_t dim, int64_t heads, const std::string& gelu,
                            bool qkv_bias) {
  const std::string d = std::to_string(dim);
  const std::string wide = std::to_string(4 * dim);
  return GptResidual("body { layernorm { features: " + d +
                     " } } body { attention { dim: " + d +
                     " heads: " + std::to_string(heads) + " causal: true" +
                     (qkv_bias ? "" : " qkv_bias: false") + " } }") +
         GptResidual("body { layernorm { features: " + d +
                     " } } body { linear { in: " + d + " out: " + wide +
                     " } } body { gelu { approximate: " +
                     (gelu == "tanh" ? "TANH" : "NONE") +
                     " } } body { linear { in: " + wide + " out: " + d +
                     " } }");
}

// Golden names of a block's parameters, in forward order.
inline std::vector<std::string> GoldenBlockNames() {
  return {"ln1_g", "ln1_b", "w_in",  "b_in",  "w_out", "b_out",
          "ln2_g", "ln2_b", "w_fc1", "b_fc1", "w_fc2", "b_fc2"};
}

// Layers and golden names of a whole model, in forward order.
struct GoldenGpt {
  std::string layers;
  std::vector<std::string> names;
};

inline GoldenGpt GoldenGptOf(const GoldenCase& c) {
  const int64_t dim = static_cast<int64_t>(c.Number("d", 0));
  const std::string d = std::to_string(dim);
  const bool tied = c.Flag("tied"), qkv_bias = c.Flag("qkv_bias");
  GoldenGpt gpt;
  gpt.layers =
      "sequential { embedding { tokens: 65 dim: " + d +
      " } } sequential { position_embedding { length: " + c.Text("T", "") +
      " dim: " + d + " } }";
  gpt.names = {"wte", "wpe"};
  for (int i = 0; i < static_cast<int>(c.Number("layers", 0)); ++i) {
    gpt.layers += GptBlock(dim, static_cast<int64_t>(c.Number("heads", 1)),
                           c.Text("gelu", ""), qkv_bias);
    const std::string h = "h" + std::to_string(i) + ".";
    for (const char* name :
         {"ln1.g", "ln1.b", "attn.w_in", "attn.b_in", "attn.w_out",
          "attn.b_out", "ln2.g", "ln2.b", "fc1.w", "fc1.b", "fc2.w", "fc2.b"}) {
      if (!qkv_bias && std::string(name) == "attn.b_in") continue;
      gpt.names.push_back(h + name);
    }
  }
  gpt.layers += "sequential { layernorm { features: " + d + " } }";
  gpt.names.insert(gpt.names.end(), {"lnf.g", "lnf.b"});
  if (tied) {
    gpt.layers += "sequential { tied_linear { to: \"0.weight\" } }";
  } else {
    gpt.layers += "sequential { linear { in: " + d + " out: 65 bias: false } }";
    gpt.names.push_back("head.w");
  }
  return gpt;
}

}  // namespace tributary::testing
