// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/layers/layer_kind.h"
#include "common/schema/case_table.h"
#include "tributary/v1/job.pb.h"
#include "worker/train/model/layer.h"
#include "worker/train/model/scratch.h"

namespace tributary {

class TensorCuts;
class TensorGroup;

struct LayerOptions {
  Ops* ops = nullptr;
  int64_t max_rows = 0;
  Scratch* scratch = nullptr;  // must outlive the layer
  std::string name;            // position in the model: "3", "3.body.0"
  bool first = false;          // the model's first layer
  // Parameters of earlier layers, to which the layer may be tied.
  const ParameterSpecs* earlier = nullptr;
  uint64_t seed = 0;        // for dropout
  int32_t dropout_key = 0;  // tells apart the model's dropout layers
  // How the layers are split over the ranks of a group. Both are set, or none.
  const TensorCuts* cuts = nullptr;
  TensorGroup* group = nullptr;  // must outlive the layer
};

using LayerOr = absl::StatusOr<std::unique_ptr<Layer>>;

// Creates the layer of `spec` for samples of `input_shape`. InvalidArgument
// names the layer, what it wants and what it gets. ResourceExhausted when the
// device has not enough memory.
LayerOr CreateLayer(const v1::LayerSpec& spec, const Shape& input_shape,
                    const LayerOptions& options);

// ---- for worker/train/model/layers

// BLAS takes rows and columns as 32-bit integers.
inline constexpr int64_t kMaxExtent = 2147483647;

// This rank's part of a layer: [begin, end) of the extent that is split.
struct LayerPart {
  LayerCut cut = LayerCut::kWhole;
  int64_t extent = 0;
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
};
LayerPart PartOf(const LayerOptions& options);

// The arguments for creating a layer, or this rank's part of it: shapes and
// parameters are those of the part; `spec` is the whole layer's, with defaults
// set.
struct LayerInit {
  const v1::LayerSpec& spec;
  const LayerOptions& options;
  LayerPart part;
  Shape input_shape;
  Shape output_shape;
  ParameterSpecs parameters;
  LayerMemory memory;
};

using LayerCreator = LayerOr (*)(const LayerInit& init);

// Filled by worker/train/model/layers.
using LayerCreators = CaseTable<LayerCreator>;

}  // namespace tributary
