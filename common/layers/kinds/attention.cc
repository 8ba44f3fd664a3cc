// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "common/base/limits.h"
#include "common/layers/layer_chain.h"
#include "common/layers/sample_shape.h"

namespace tributary {
namespace {

// Queries whose scores the CPU computes together (kernels/cpu/attention.cc).
constexpr int64_t kQueries = 128;

// The number of scores that are computed for one sample: with causal attention
// only those up to the last key that a block of queries sees.
double Scores(int64_t time, int64_t heads, bool causal) {
  const double all = static_cast<double>(time);
  const double per_head = static_cast<double>(heads);
  if (!causal) return per_head * all * all;
  // Whole block b sees (b + 1) kQueries keys; the remaining queries see all.
  const double queries = static_cast<double>(kQueries);
  const int64_t blocks = time / kQueries;
  const double whole = static_cast<double>(blocks);
  const double rest = static_cast<double>(time % kQueries);
  return per_head * (queries * queries * whole * (whole + 1) / 2 + rest * all);
}

// torch.nn.MultiheadAttention with its input as query, key and value.
// in_proj_weight: [3 dim, dim], in_proj_bias: [3 dim], out_proj.weight: [dim,
// dim], out_proj.bias: [dim].
class Attention final : public LayerKind {
 public:
  absl::Span<const FieldRule> rules() const override { return kRules; }

  absl::Status Check(const v1::LayerSpec& layer, const std::string& path,
                     LayerChain* chain) const override {
    const int64_t dim = layer.attention().dim();
    const int64_t heads = layer.attention().heads();
    TRIBUTARY_RETURN_IF_ERROR(chain->WantFeatures(path + ".dim", dim));
    chain->SetFeatures(dim, path + ".dim");
    if (dim % heads != 0) {
      return chain->Error(path + ".heads", " must divide dim, ", dim, ", got ",
                          heads);
    }
    if (dim / heads > kMaxHeadDim) {
      return chain->Error(path + ".heads", " must be at least ",
                          (dim + kMaxHeadDim - 1) / kMaxHeadDim,
                          ", since a head has at most ", kMaxHeadDim,
                          " dimensions; got ", heads);
    }
    return absl::OkStatus();
  }

  // The input projections are xavier_uniform and biases 0.
  std::vector<LayerParameter> Parameters(
      const v1::LayerSpec& layer) const override {
    const int64_t dim = layer.attention().dim();
    const double d = static_cast<double>(dim);
    std::vector<LayerParameter> parameters = {
        {"in_proj_weight", {3 * dim, dim}, {.bound = std::sqrt(6 / (4 * d))}}};
    if (layer.attention().qkv_bias()) {
      parameters.push_back({"in_proj_bias", {3 * dim}, {}});
    }
    parameters.push_back({"out_proj.weight", {dim, dim}, UniformOfFanIn(d)});
    parameters.push_back({"out_proj.bias", {dim}, {}});
    return parameters;
  }

  absl::StatusOr<LayerNumbers> Numbers(const v1::LayerSpec& layer,
                                       const LayerInput& input) const override {
    const v1::AttentionSpec& spec = layer.attention();
    const Shape& shape = input.shape;
    if (shape.size() != 2 || shape[1] != spec.dim()) {
      return WantsSamples(shape, "of shape [positions, dim = ", spec.dim(),
                          "]");
    }
    if (spec.heads() < 1 || spec.dim() % spec.heads() != 0 ||
        spec.dim() / spec.heads() > kMaxHeadDim) {
      return absl::InvalidArgumentError(absl::StrCat(
          "heads must divide dim into parts of at most ", kMaxHeadDim,
          ", got dim ", spec.dim(), ", heads ", spec.heads()));
    }
    const double size = Elements(shape), d = static_cast<double>(spec.dim());
    const double scores = Scores(shape[0], spec.heads(), spec.causal());
    const double product = 2 * scores * d / static_cast<double>(spec.heads());
    const double add = size + (spec.qkv_bias() ? 3 * size : 0);
    LayerNumbers n;
    n.output_shape = shape;
    // The projections q, k, v and the output; the scores and the context.
    n.forward_flops =
        2 * size * 4 * d + add + 2 * product + kExponential * scores;
    // The gradients of both projections' weights and of the context; the scores
    // again and four products from them.
    n.backward_flops =
        2 * size * 5 * d + add + 5 * product + kExponential * scores;
    n.input_gradient_flops = 2 * size * 3 * d;
    // q, k, v, the context and the logarithms of the sums.
    n.own_elements = 4 * NumElements(shape) + shape[0] * spec.heads();
    n.scratch_elements = 4 * NumElements(shape);
    return n;
  }
  LayerMemory memory() const override { return {.reads_input = true}; }

  LayerCut CutAlone() const override { return LayerCut::kHeads; }
  int64_t ExtentToCut(const v1::LayerSpec& layer, int ranks) const override {
    const v1::AttentionSpec& spec = layer.attention();
    return spec.heads() % ranks == 0 ? spec.dim() : 0;
  }
  ParameterSlice SliceOf(const std::string& parameter, LayerCut /*cut*/,
                         int64_t begin, int64_t end) const override {
    if (parameter == "out_proj.bias") return {};  // is added to the sum
    if (parameter == "out_proj.weight") {
      return {.dim = 1, .begin = begin, .end = end};
    }
    return {.dim = 0, .begin = begin, .end = end, .groups = 3};  // q, k, v
  }
  int64_t MultipleOfRanks(const v1::LayerSpec& layer,
                          std::string* field) const override {
    *field = ".heads";
    return layer.attention().heads();
  }

 private:
  static constexpr FieldRule kRules[] = {
      Required("AttentionSpec.dim", kExtent),
      Required("AttentionSpec.heads", kExtent),
      Default("AttentionSpec.qkv_bias", "true"),
  };
};

}  // namespace

void AddAttention(LayerKinds* kinds) {
  static const Attention attention;
  kinds->Add(v1::LayerSpec::kAttention, &attention);
}

}  // namespace tributary
