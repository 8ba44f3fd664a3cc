#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/layers/layer_kind.h"
#include "tributary/v1/job.pb.h"
#include "worker/model/layer.h"
#include "worker/model/scratch.h"

namespace tributary {

class TensorCuts;
class TensorGroup;

struct LayerOptions {
  Ops* ops = nullptr;
  int64_t max_rows = 0;
  Scratch* scratch = nullptr;  // outlives the layer
  std::string name;            // place in the model: "3", "3.body.0"
  bool first = false;          // of the model
  // Parameters of the layers before it, by which it may tie itself to one.
  const ParameterSpecs* earlier = nullptr;
  uint64_t seed = 0;        // of dropout
  int32_t dropout_key = 0;  // tells a dropout from the others of the model
  // How the layers are cut over the ranks of a group; both or none.
  const TensorCuts* cuts = nullptr;
  TensorGroup* group = nullptr;  // outlives the layer
};

using LayerOr = absl::StatusOr<std::unique_ptr<Layer>>;

// The layer that `spec` asks for, taking samples of `input_shape`.
// InvalidArgument names the layer, what it wants and what it gets;
// ResourceExhausted when the device has no room.
LayerOr CreateLayer(const v1::LayerSpec& spec, const Shape& input_shape,
                    const LayerOptions& options);

// ---- for worker/model/layers

// BLAS counts rows and columns in 32 bits.
inline constexpr int64_t kMaxExtent = 2147483647;

// What this rank has of a layer: of the extent that is cut, [begin, end).
struct LayerPart {
  LayerCut cut = LayerCut::kWhole;
  int64_t extent = 0;
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
};
LayerPart PartOf(const LayerOptions& options);

// A layer to be made, or this rank's part of one: shapes and parameters are the
// part's, the message is the whole layer's, with its defaults.
struct LayerInit {
  const v1::LayerSpec& spec;
  const LayerOptions& options;
  LayerPart part;
  Shape input_shape;
  Shape output_shape;
  ParameterSpecs parameters;
  LayerMemory memory;
};

// Each file of worker/model/layers adds a function for each of its kinds:
// `void Add...(LayerCreators*)`, named after the file as in
// common/layers/kinds.
using LayerCreator = LayerOr (*)(const LayerInit& init);

class LayerCreators {
 public:
  void Add(v1::LayerSpec::KindCase kind_case, LayerCreator creator);
  LayerCreator Find(int kind_case) const;  // null: there is none

 private:
  std::vector<LayerCreator> by_case_;
};

}  // namespace tributary
