// SPDX-License-Identifier: Apache-2.0
#include "common/cost/tensor_shares.h"

#include "absl/strings/match.h"
#include "common/layers/model_parameters.h"

namespace tributary {
namespace {

class Sharing {
 public:
  Sharing(const ModelCosts& model, const TensorCuts& cuts)
      : model_(model), cuts_(cuts) {}

  ModelShare Share() {
    CutParameters();
    share_.final_after_share.resize(model_.parameter_sizes.size());
    share_.layer_of_parameter.resize(model_.parameter_sizes.size());
    for (const LayerCost& layer : model_.layers) {
      share_.layers.emplace_back();
      Add(layer, &share_.layers.back());
    }
    for (size_t i = 0; i < model_.layers.size(); ++i) {
      const LayerCost& layer = model_.layers[i];
      double flops = 0;
      NoteFinal(layer, &flops);
      for (int p = 0; p < layer.num_parameters; ++p) {
        double& at = share_.final_after_share[layer.first_parameter + p];
        at = flops > 0 ? at / flops : 1;
        share_.layer_of_parameter[layer.first_parameter + p] =
            static_cast<int>(i);
      }
    }
    return std::move(share_);
  }

 private:
  // The last rank's slice is never one of the smaller slices (EvenCut).
  void CutParameters() {
    share_.parameter_elements = model_.parameter_sizes;
    if (cuts_.ranks() <= 1) return;
    const ParameterSpecs whole = ModelParameters(model_.model);
    for (size_t p = 0; p < whole.size(); ++p) {
      const ParameterSlice slice =
          cuts_.SliceOf(whole[p].name, cuts_.ranks() - 1);
      if (slice.whole()) continue;
      share_.parameter_elements[p] =
          NumElements(ShapeOfSlice(whole[p].shape, slice));
    }
  }

  double Part(const LayerCost& layer) const {
    switch (cuts_.CutOf(layer.name)) {
      case LayerCut::kWhole:
      case LayerCut::kVocabulary:  // every rank writes the whole output
        return 1;
      default:
        return 1.0 / cuts_.ranks();
    }
  }

  void Add(const LayerCost& layer, LayerShare* share) {
    if (!layer.body.empty()) {
      // Every rank computes the sum of the branches.
      double forward = layer.forward_flops, backward = layer.backward_flops;
      int64_t kept = layer.kept_elements;
      for (const auto* branch : {&layer.shortcut, &layer.body}) {
        for (const LayerCost& within : *branch) {
          forward -= within.forward_flops;
          backward -= within.backward_flops;
          kept -= within.kept_elements;
          Add(within, share);
        }
      }
      share->forward_flops += forward;
      share->backward_flops += backward;
      share->kept_elements += kept;
      return;
    }
    share->forward_flops += layer.forward_flops * Part(layer);
    share->backward_flops += layer.backward_flops * Part(layer);
    share->kept_elements += Kept(layer);
    AddCollectives(layer, share);
  }

  int64_t Kept(const LayerCost& layer) const {
    switch (cuts_.CutOf(layer.name)) {
      case LayerCut::kColumns:
      case LayerCut::kWithin:
        return layer.kept_elements / cuts_.ranks();
      case LayerCut::kHeads:
        return layer.output_elements() +
               (layer.kept_elements - layer.output_elements()) / cuts_.ranks();
      default:
        return layer.kept_elements;
    }
  }

  void AddCollectives(const LayerCost& layer, LayerShare* share) const {
    const int64_t out = layer.output_elements();
    const int64_t in = NumElements(layer.input_shape);
    // Backward computes no input gradient before the first layer with
    // parameters, except in a branch.
    const bool wants_input =
        layer.first_parameter > 0 || absl::StrContains(layer.name, '.');
    switch (cuts_.CutOf(layer.name)) {
      case LayerCut::kColumns:
        if (wants_input) share->backward.push_back({in});
        return;
      case LayerCut::kGatherColumns:
        share->forward.push_back({out, true});
        if (wants_input) share->backward.push_back({in});
        return;
      case LayerCut::kHeads:
        share->forward.push_back({out});
        if (wants_input) share->backward.push_back({in});
        return;
      case LayerCut::kRows:
      case LayerCut::kVocabulary:
        share->forward.push_back({out});
        return;
      case LayerCut::kWhole:
      case LayerCut::kWithin:
        return;
    }
  }

  // Follows backward through one layer and notes the work done when each of its
  // tensors is final.
  void NoteFinal(const LayerCost& layer, double* flops) {
    if (layer.body.empty()) {
      *flops += layer.backward_flops * Part(layer);
      for (int p = 0; p < layer.num_parameters; ++p) {
        share_.final_after_share[layer.first_parameter + p] = *flops;
      }
      return;
    }
    double within = 0;
    for (const auto* branch : {&layer.shortcut, &layer.body}) {
      for (size_t i = branch->size(); i-- > 0;) {
        within += (*branch)[i].backward_flops;
        NoteFinal((*branch)[i], flops);
      }
    }
    *flops += layer.backward_flops - within;
  }

  const ModelCosts& model_;
  const TensorCuts& cuts_;
  ModelShare share_;
};

}  // namespace

ModelShare ShareOfModel(const ModelCosts& model, const TensorCuts& cuts) {
  return Sharing(model, cuts).Share();
}

}  // namespace tributary
