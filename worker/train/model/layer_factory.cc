// SPDX-License-Identifier: Apache-2.0
#include "worker/train/model/layer_factory.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/layers/tensor_cuts.h"
#include "common/status/status_macros.h"
#include "worker/train/model/parallel_layer.h"
#include "worker/train/model/residual_layer.h"
#include "worker/train/model/tensor_group.h"

namespace tributary {

#define TRIBUTARY_LAYERS(Add) void Add(LayerCreators* creators);
#include "worker/train/model/layer_creators.inc"
#undef TRIBUTARY_LAYERS

namespace {

const LayerCreators& AllCreators() {
  static const LayerCreators* const creators = [] {
    auto* made = new LayerCreators;
#define TRIBUTARY_LAYERS(Add) Add(made);
#include "worker/train/model/layer_creators.inc"
#undef TRIBUTARY_LAYERS
    return made;
  }();
  return *creators;
}

Shape WithLast(Shape shape, int64_t last) {
  shape.back() = last;
  return shape;
}

// The parameters that the layer may be tied to. A split parameter has the shape
// of the whole one.
ParameterSpecs TiesOf(const std::string& to, const LayerPart& part,
                      const LayerOptions& options) {
  ParameterSpecs ties;
  if (to.empty() || options.earlier == nullptr) return ties;
  for (const ParameterSpec& spec : *options.earlier) {
    if (spec.name != to) continue;
    ties.push_back(spec);
    if (part.cut != LayerCut::kWhole) ties.back().shape[0] = part.extent;
  }
  return ties;
}

absl::StatusOr<LayerNumbers> NumbersOf(const LayerKind& kind,
                                       const v1::LayerSpec& spec,
                                       const Shape& input_shape,
                                       const LayerPart& part,
                                       const LayerOptions& options) {
  const bool input_is_cut =
      part.cut == LayerCut::kRows || part.cut == LayerCut::kWithin;
  const ParameterSpecs ties = TiesOf(kind.TiedTo(spec), part, options);
  return kind.Numbers(
      spec,
      {.shape = input_is_cut ? WithLast(input_shape, part.extent) : input_shape,
       .first = options.first,
       .earlier = &ties});
}

// Joins this rank's part of a layer with those of the other ranks. bias: added
// to summed outputs; may be empty.
std::unique_ptr<Layer> JoinParts(std::unique_ptr<Layer> part, LayerCut cut,
                                 const Shape& whole_output,
                                 const ParameterSpecs& bias,
                                 const LayerOptions& options) {
  ParallelLayer::Options joined = {.group = options.group,
                                   .max_rows = options.max_rows,
                                   .scratch = options.scratch};
  Shape output_shape = part->output_shape();
  switch (cut) {
    case LayerCut::kWhole:
    case LayerCut::kWithin:
      return part;
    case LayerCut::kColumns:
      joined.sum_input_gradient = true;
      break;
    case LayerCut::kGatherColumns:
      joined.sum_input_gradient = true;
      joined.gather = true;
      output_shape = whole_output;
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
                                         std::move(output_shape), bias, joined);
}

LayerOr CreateByKind(const v1::LayerSpec& spec, const Shape& input_shape,
                     const LayerOptions& options) {
  if (spec.has_residual()) {
    return CreateResidual(spec.residual(), input_shape, options);
  }
  const LayerKind* kind = KindOf(spec);
  const LayerCreator creator = AllCreators().Find(spec.kind_case());
  if (kind == nullptr || creator == nullptr) {
    return absl::InvalidArgumentError("has no kind");
  }
  const v1::LayerSpec whole = Resolved(spec);
  TRIBUTARY_RETURN_IF_ERROR(CheckLayerFields(whole));
  const LayerPart part = PartOf(options);
  TRIBUTARY_ASSIGN_OR_RETURN(
      const LayerNumbers numbers,
      NumbersOf(*kind, whole, input_shape, part, options));
  LayerInit init = {.spec = whole,
                    .options = options,
                    .part = part,
                    .input_shape = input_shape,
                    .output_shape = numbers.output_shape,
                    .parameters = {},
                    .memory = kind->memory()};
  if (part.cut == LayerCut::kColumns || part.cut == LayerCut::kGatherColumns ||
      part.cut == LayerCut::kWithin) {
    init.output_shape.back() = part.size();
  }
  const bool sums = part.cut == LayerCut::kRows || part.cut == LayerCut::kHeads;
  ParameterSpecs bias;
  for (const LayerParameter& parameter : kind->Parameters(whole)) {
    ParameterSpec own = {.name = parameter.name,
                         .shape = parameter.shape,
                         .running_momentum = parameter.running_momentum};
    ParameterSlice slice;
    if (part.cut != LayerCut::kWhole) {
      slice = kind->SliceOf(own.name, part.cut, part.begin, part.end);
    }
    own.shape = ShapeOfSlice(own.shape, slice);
    // A parameter that every rank holds whole is added once, to the sum.
    (sums && slice.whole() ? bias : init.parameters).push_back(std::move(own));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<Layer> layer, creator(init));
  return JoinParts(std::move(layer), part.cut, numbers.output_shape, bias,
                   options);
}

}  // namespace

Layer::Layer(const LayerInit& init)
    : Layer(init.options.ops, init.input_shape, init.output_shape,
            init.parameters, init.memory) {}

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

LayerOr CreateLayer(const v1::LayerSpec& spec, const Shape& input_shape,
                    const LayerOptions& options) {
  LayerOr layer = CreateByKind(spec, input_shape, options);
  if (layer.ok() && (*layer)->output_size() > kMaxExtent) {
    layer = absl::InvalidArgumentError(
        absl::StrCat("gives ", (*layer)->output_size(),
                     " numbers a sample, wants at most ", kMaxExtent));
  }
  if (layer.ok()) return layer;
  if (absl::StartsWith(layer.status().message(), "layer ")) {
    return layer;  // from a nested layer
  }
  return absl::Status(
      layer.status().code(),
      absl::StrCat("layer ", options.name, " (", LayerKindName(spec),
                   "): ", layer.status().message()));
}

}  // namespace tributary
