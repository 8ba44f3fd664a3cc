#include "common/cost/tensor_shares.h"

#include <map>
#include <set>

namespace tributary {
namespace {

constexpr int64_t kMinColumns = 16;

enum class Cut {
  kWhole,
  kColumns,
  kGatherColumns,
  kWithin,
  kRows,
  kHeads,
  kVocabulary
};

bool IsElementwise(const LayerCost& layer) {
  static const auto* const kinds = new std::set<std::string>{
      "relu", "gelu", "sigmoid", "tanh", "silu", "dropout"};
  return kinds->contains(layer.kind);
}

class Sharing {
 public:
  Sharing(const ModelCosts& model, int ranks) : model_(model), ranks_(ranks) {}

  ModelShare Share() {
    if (ranks_ > 1) {
      ChooseCuts(model_.layers);
      ChooseHead();
    }
    share_.parameter_elements = model_.parameter_sizes;
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
  void ChooseCuts(const std::vector<LayerCost>& layers) {
    for (size_t i = 0; i < layers.size(); ++i) {
      const LayerCost& layer = layers[i];
      if (layer.kind == "linear") {
        if (const size_t second = ChoosePair(layers, i); second > 0) {
          i = second;
        } else if (layer.output_shape.back() >= kMinColumns * ranks_) {
          cuts_[&layer] = Cut::kGatherColumns;
        }
      } else if (layer.kind == "attention" && layer.heads % ranks_ == 0) {
        cuts_[&layer] = Cut::kHeads;
      } else if (layer.kind == "embedding") {
        cuts_[&layer] = Cut::kVocabulary;
      } else if (layer.kind == "tied_linear") {
        cuts_[&layer] = Cut::kGatherColumns;
      }
      ChooseCuts(layer.body);
      ChooseCuts(layer.shortcut);
    }
  }

  // Returns the place of the second layer; 0: there is none.
  size_t ChoosePair(const std::vector<LayerCost>& layers, size_t first) {
    size_t second = first + 1;
    while (second < layers.size() && IsElementwise(layers[second])) ++second;
    if (second == layers.size() || layers[second].kind != "linear" ||
        layers[first].output_shape.back() < ranks_) {
      return 0;
    }
    cuts_[&layers[first]] = Cut::kColumns;
    for (size_t i = first + 1; i < second; ++i)
      cuts_[&layers[i]] = Cut::kWithin;
    cuts_[&layers[second]] = Cut::kRows;
    return second;
  }

  void ChooseHead() {
    const auto last = cuts_.find(&model_.layers.back());
    if (last != cuts_.end() && last->second == Cut::kGatherColumns) {
      last->second = Cut::kColumns;
    }
  }

  Cut CutOf(const LayerCost& layer) const {
    const auto found = cuts_.find(&layer);
    return found == cuts_.end() ? Cut::kWhole : found->second;
  }
  double Part(Cut cut) const {
    return cut == Cut::kWhole || cut == Cut::kVocabulary ? 1.0 : 1.0 / ranks_;
  }

  void Add(const LayerCost& layer, LayerShare* share) {
    if (!layer.body.empty()) {
      // The sum of the branches is computed by all.
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
    const Cut cut = CutOf(layer);
    share->forward_flops += layer.forward_flops * Part(cut);
    share->backward_flops += layer.backward_flops * Part(cut);
    share->kept_elements += Kept(layer, cut);
    AddCollectives(layer, cut, share);
    CutParameters(layer, cut);
  }

  int64_t Kept(const LayerCost& layer, Cut cut) const {
    switch (cut) {
      case Cut::kColumns:
      case Cut::kWithin:
        return layer.kept_elements / ranks_;
      case Cut::kHeads:
        return layer.output_elements() +
               (layer.kept_elements - layer.output_elements()) / ranks_;
      default:
        return layer.kept_elements;
    }
  }

  void AddCollectives(const LayerCost& layer, Cut cut, LayerShare* share) {
    const int64_t out = layer.output_elements();
    const int64_t in = NumElements(layer.input_shape);
    // The model's first layer needs no gradient of its input.
    const bool wants_input = &layer != &model_.layers.front();
    switch (cut) {
      case Cut::kColumns:
        if (wants_input) share->backward.push_back({in});
        return;
      case Cut::kGatherColumns:
        share->forward.push_back({out, true});
        if (wants_input) share->backward.push_back({in});
        return;
      case Cut::kHeads:
        share->forward.push_back({out});
        if (wants_input) share->backward.push_back({in});
        return;
      case Cut::kRows:
      case Cut::kVocabulary:
        share->forward.push_back({out});
        return;
      case Cut::kWhole:
      case Cut::kWithin:
        return;
    }
  }

  void CutParameters(const LayerCost& layer, Cut cut) {
    if (cut == Cut::kWhole || cut == Cut::kWithin) return;
    for (int p = 0; p < layer.num_parameters; ++p) {
      // A bias that is added to a sum over ranks stays whole: the last one.
      const bool bias = p > 0 && p + 1 == layer.num_parameters;
      if (bias && (cut == Cut::kRows || cut == Cut::kHeads)) continue;
      int64_t& elements = share_.parameter_elements[layer.first_parameter + p];
      elements = (elements + ranks_ - 1) / ranks_;
    }
  }

  // Backward through one layer: what is done when its tensors are final.
  void NoteFinal(const LayerCost& layer, double* flops) {
    if (layer.body.empty()) {
      *flops += layer.backward_flops * Part(CutOf(layer));
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
  const int ranks_;
  std::map<const LayerCost*, Cut> cuts_;
  ModelShare share_;
};

}  // namespace

ModelShare ShareOfModel(const ModelCosts& model, int ranks) {
  return Sharing(model, ranks).Share();
}

}  // namespace tributary
