// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/base/parameter_slice.h"
#include "common/layers/layer_kind.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// How the layers of a model are cut over the ranks of a group (Megatron-LM,
// Shoeybi et al. 2019):
//  - a linear layer whose outputs pass through nothing but elementwise layers
//    into another one makes a pair with it, the first by columns, the second by
//    rows, if at least as many features as ranks are between them;
//  - any other linear layer is cut by columns, if every rank gets at least
//    16 of them, and its outputs are gathered;
//  - attention is cut by heads, an embedding by tokens;
//  - a tied head is cut as its embedding is;
//  - the outputs of the last layer stay cut, if it is a linear layer without a
//    pair or a tied head, and the loss takes them so (`cut_logits`);
//  - all else is computed by every rank.
// Extents are cut by EvenCut. Looks at nothing but the layers.
class TensorCuts {
 public:
  TensorCuts() = default;  // one rank: everything whole
  TensorCuts(const v1::ModelSpec& model, int ranks, bool cut_logits);

  int ranks() const { return ranks_; }

  // The cut of the layer named "3" or "3.body.0".
  LayerCut CutOf(const std::string& layer) const;
  // The extent that is cut, in the whole layer; for attention its dim. 0 for a
  // layer that is not cut.
  int64_t ExtentOf(const std::string& layer) const;
  // The number of the last layer's outputs if they stay cut, else 0.
  int64_t cut_outputs() const { return cut_outputs_; }

  // The slice that `rank` holds of this parameter, "3.body.0.weight".
  ParameterSlice SliceOf(const std::string& parameter, int rank) const;

 private:
  using Layers = google::protobuf::RepeatedPtrField<v1::LayerSpec>;
  struct Cut {
    LayerCut kind = LayerCut::kWhole;
    int64_t extent = 0;
    const LayerKind* layer = nullptr;
  };

  void CutAll(const Layers& layers, const std::string& prefix);
  // Returns the index of the pair's second layer, or -1 when there is none.
  int CutPair(const Layers& layers, int first, const std::string& prefix);
  void CutHead(const v1::ModelSpec& model, bool cut_logits);

  int ranks_ = 1;
  std::map<std::string, Cut> cuts_;  // of layers that are cut
  int64_t cut_outputs_ = 0;
};

}  // namespace tributary
