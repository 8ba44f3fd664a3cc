// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/parameter_slice.h"
#include "common/base/parameter_spec.h"
#include "common/schema/case_table.h"
#include "common/schema/field_rule.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

class LayerChain;

// How the elements of a parameter start: uniform within +-bound if bound > 0,
// else normal with mean 0 and deviation std if std > 0, else all `value`.
struct InitialValues {
  double bound = 0;
  double std = 0;
  float value = 0;
};

// kaiming_uniform with a = sqrt(5), PyTorch's default for weights and biases.
InitialValues UniformOfFanIn(double fan_in);

// One parameter of one layer.
struct LayerParameter {
  std::string name;  // without the layer's name: "weight", "out_proj.bias"
  Shape shape;
  InitialValues initial;
  double running_momentum = 0;  // as in ParameterSpec
};

// How the ranks of a tensor-parallel group share one layer.
enum class LayerCut {
  kWhole,          // every rank computes all of it
  kColumns,        // a linear layer by its outputs, which stay cut
  kGatherColumns,  // the same, but all ranks get all outputs
  kWithin,         // an elementwise layer whose input is cut and stays cut
  kRows,           // a linear layer by its inputs: the outputs are summed
  kHeads,          // attention by heads: the outputs are summed
  kVocabulary,     // an embedding by tokens: the outputs are summed
};

// The memory that a layer's backward pass reads and writes.
struct LayerMemory {
  bool reads_input = false;   // Backward reads what Forward got
  bool reads_output = false;  // Backward reads what Forward made
  bool in_place = false;  // the output may overwrite the input, dx may be dy
  bool passes_through = false;  // the output is the input, untouched
  // Backward needs room for the input's gradient even if nobody asks for it.
  bool always_writes_input_gradient = false;
};

// The output shape of a layer and its cost for one sample. A multiplication and
// an addition are two FLOPs (docs/parallelism.md has the table).
//
// These FLOPs are part of the plan of a job: CutStages places the borders of
// pipeline stages by them. A different number moves borders, and with them the
// parameters that workers declare: two releases whose numbers differ cannot
// share a job.
struct LayerNumbers {
  Shape output_shape;
  double forward_flops = 0;
  double backward_flops = 0;        // without the gradient of its input
  double input_gradient_flops = 0;  // of the gradient of its input
  int64_t own_elements = 0;      // kept for backward beside inputs and outputs
  int64_t scratch_elements = 0;  // shared by all layers
};

// The input of a layer.
struct LayerInput {
  Shape shape;         // of one sample
  bool first = false;  // the layer is the model's first
  // The model's parameters before this layer; the layer may tie itself to one
  // of them.
  const ParameterSpecs* earlier = nullptr;
};

// A kind of layer, apart from any device: one class for each member of
// LayerSpec, one file of common/layers/kinds for each family. All are pure
// functions of the layer's message, whose defaults are filled in
// (ResolveLayer). A residual has no kind; each of its layers has.
class LayerKind {
 public:
  virtual ~LayerKind() = default;

  // Ranges and defaults of the message's fields.
  virtual absl::Span<const FieldRule> rules() const { return {}; }
  // Fills in the defaults that depend on other fields.
  virtual void FillDependentDefaults(v1::LayerSpec*) const {}

  // Checks the layer by itself and against what the job file says of its input,
  // and tells the chain what comes out. `path` is the layer's message:
  // "model.sequential.3.linear".
  virtual absl::Status Check(const v1::LayerSpec& /*layer*/,
                             const std::string& /*path*/,
                             LayerChain* /*chain*/) const {
    return absl::OkStatus();
  }
  // Returns the number of features that the layer wants of its input, and sets
  // the field that gives it, such as ".in"; 0: the layer takes any number.
  virtual int64_t WantedFeatures(const v1::LayerSpec&,
                                 std::string* /*field*/) const {
    return 0;
  }
  // True if as many features come out as go in.
  virtual bool keeps_features() const { return elementwise(); }
  // True if the input is token ids; such a layer is the model's first.
  virtual bool takes_tokens() const { return false; }

  // The layer's parameters in forward order.
  virtual std::vector<LayerParameter> Parameters(const v1::LayerSpec&) const {
    return {};
  }
  // The name of an earlier layer's parameter that this layer uses too; "": it
  // uses none.
  virtual std::string TiedTo(const v1::LayerSpec&) const { return ""; }

  // InvalidArgument says what the layer wants and what it gets.
  virtual absl::StatusOr<LayerNumbers> Numbers(
      const v1::LayerSpec& layer, const LayerInput& input) const = 0;
  virtual LayerMemory memory() const = 0;

  // ---- tensor parallelism (Shoeybi et al. 2019)

  // True if every output element depends only on the input element at its
  // place.
  virtual bool elementwise() const { return false; }
  // The inputs and outputs of a linear layer. The layer can be cut by either,
  // so that two linear layers make a pair. 0 and 0 for other kinds.
  struct Product {
    int64_t in = 0;
    int64_t out = 0;
  };
  virtual Product ProductOf(const v1::LayerSpec&) const { return {}; }
  // How `ranks` share a layer that is not in a pair, and the extent that is
  // cut; 0: the layer stays whole.
  virtual LayerCut CutAlone() const { return LayerCut::kWhole; }
  virtual int64_t ExtentToCut(const v1::LayerSpec&, int /*ranks*/) const {
    return 0;
  }
  // The part of a parameter that the rank with [begin, end) of the cut extent
  // holds.
  virtual ParameterSlice SliceOf(const std::string& /*parameter*/,
                                 LayerCut /*cut*/, int64_t /*begin*/,
                                 int64_t /*end*/) const {
    return {};
  }
  // Returns the number of the layer that must be a multiple of the ranks, and
  // sets its field, such as ".heads"; 0: no number must.
  virtual int64_t MultipleOfRanks(const v1::LayerSpec&,
                                  std::string* /*field*/) const {
    return 0;
  }
};

// Returns the kind of a layer; null for a residual or a layer without a kind.
const LayerKind* KindOf(const v1::LayerSpec& layer);

// The rules of all kinds.
std::vector<FieldRule> LayerRules();

// The kind's name in the job file, such as "linear"; "?" without a kind.
std::string LayerKindName(const v1::LayerSpec& layer);

// Fills in all defaults, also of the layers within a residual.
void ResolveLayer(v1::LayerSpec* layer);
void ResolveLayers(v1::ModelSpec* model);
v1::LayerSpec Resolved(const v1::LayerSpec& layer);

// InvalidArgument: a number of the resolved layer is out of its field's range.
absl::Status CheckLayerFields(const v1::LayerSpec& layer);

// Returns a shape as text, such as "[3, 28, 28]".
std::string SampleText(const Shape& shape);

// Filled by common/layers/kinds.
using LayerKinds = CaseTable<const LayerKind*>;

}  // namespace tributary
