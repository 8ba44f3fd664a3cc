#include <utility>

#include "worker/model/layers/layer_creators.h"
#include "worker/model/layers/parallel_layer.h"
#include "worker/model/tensor_group.h"

namespace tributary {

LayerPart PartOf(const LayerOptions& options) {
  if (options.cuts == nullptr) return {};
  const LayerCut cut = options.cuts->CutOf(options.name);
  if (cut == LayerCut::kWhole) return {};
  const int64_t extent = options.cuts->ExtentOf(options.name);
  const int ranks = options.group->size(), rank = options.group->rank();
  return {.cut = cut,
          .extent = extent,
          .begin = EvenCut(extent, ranks, rank),
          .end = EvenCut(extent, ranks, rank + 1)};
}

std::unique_ptr<Layer> JoinParts(std::unique_ptr<Layer> part,
                                 const LayerOptions& options,
                                 const std::string& bias) {
  const LayerPart own = PartOf(options);
  ParallelLayer::Options joined = {.group = options.group,
                                   .bias = bias,
                                   .max_rows = options.max_rows,
                                   .scratch = options.scratch};
  Shape output_shape = part->output_shape();
  switch (own.cut) {
    case LayerCut::kWhole:
    case LayerCut::kWithin:
      return part;
    case LayerCut::kColumns:
      joined.sum_input_gradient = true;
      break;
    case LayerCut::kGatherColumns:
      joined.sum_input_gradient = true;
      joined.gather = true;
      output_shape.back() = own.extent;
      break;
    case LayerCut::kRows:
    case LayerCut::kVocabulary:
      joined.sum_output = true;
      break;
    case LayerCut::kHeads:
      joined.sum_input_gradient = true;
      joined.sum_output = true;
      break;
  }
  return std::make_unique<ParallelLayer>(options.ops, std::move(part),
                                         std::move(output_shape), joined);
}

}  // namespace tributary
