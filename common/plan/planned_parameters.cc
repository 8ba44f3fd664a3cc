// SPDX-License-Identifier: Apache-2.0
#include "common/plan/planned_parameters.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/job/job_options.h"
#include "common/layers/layer_kind.h"
#include "common/layers/model_parameters.h"
#include "common/plan/pipeline_stages.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// The layer of the model that a parameter belongs to: 3 of "3.body.0.weight".
int TopLayerOf(const std::string& parameter) {
  int layer = 0;
  (void)absl::SimpleAtoi(parameter.substr(0, parameter.find('.')), &layer);
  return layer;
}

// The last layer whose head is tied to the parameter, or -1.
int TiedLayer(const v1::ModelSpec& model, const std::string& parameter) {
  for (int l = model.sequential_size() - 1; l >= 0; --l) {
    const LayerKind* kind = KindOf(model.sequential(l));
    if (kind != nullptr && kind->TiedTo(model.sequential(l)) == parameter) {
      return l;
    }
  }
  return -1;
}

}  // namespace

absl::StatusOr<std::vector<int>> StageBounds(const ModelCosts& costs,
                                             const TensorCuts& cuts,
                                             int stages) {
  // A layer whose output stays cut joins the next layer in one part.
  std::vector<double> flops;
  std::vector<int> first;  // layer of each entry
  bool joined = false;
  const int layers = static_cast<int>(costs.layers.size());
  for (int l = 0; l < layers; ++l) {
    const LayerCost& cost = costs.layers[l];
    if (!joined) {
      flops.push_back(0);
      first.push_back(l);
    }
    flops.back() += cost.forward_flops + cost.backward_flops;
    const LayerCut cut = cuts.CutOf(absl::StrCat(l));
    joined = cut == LayerCut::kColumns || cut == LayerCut::kWithin;
  }
  if (static_cast<int>(flops.size()) < stages) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has ", flops.size(),
                     " parts that stages may hold, wanted ", stages));
  }
  first.push_back(layers);
  std::vector<int> bounds = CutStages(flops, stages);
  for (int& bound : bounds) bound = first[bound];
  return bounds;
}

absl::StatusOr<std::vector<int>> StageBounds(const v1::JobSpec& job,
                                             const Shape& sample_shape) {
  const DeviceMesh mesh = StrategyOf(job).mesh();
  TRIBUTARY_ASSIGN_OR_RETURN(const ModelCosts costs,
                             CostsOfModel(job.model(), sample_shape));
  return StageBounds(costs,
                     TensorCuts(job.model(), mesh.tensor, CutsLogits(job)),
                     mesh.stages);
}

absl::StatusOr<ParameterSpecs> PlannedParameters(const v1::JobSpec& job,
                                                 const Shape& sample_shape) {
  const v1::ModelSpec& model = job.model();
  const DeviceMesh mesh = StrategyOf(job).mesh();
  ParameterSpecs whole = ModelParameters(model);
  if (mesh.model_size() == 1) return whole;
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<int> bounds,
                             StageBounds(job, sample_shape));
  const TensorCuts cuts(model, mesh.tensor, CutsLogits(job));
  ParameterSpecs planned;
  for (ParameterSpec& spec : whole) {
    if (mesh.stages > 1) {
      spec.holders.stage = StageOfLayer(bounds, TopLayerOf(spec.name));
      const int tied = TiedLayer(model, spec.name);
      const int other = tied < 0 ? -1 : StageOfLayer(bounds, tied);
      if (other != spec.holders.stage) spec.holders.other_stage = other;
    }
    const bool is_cut = mesh.tensor > 1 && !cuts.SliceOf(spec.name, 0).whole();
    if (!is_cut) {
      planned.push_back(spec);
      continue;
    }
    for (int rank = 0; rank < mesh.tensor; ++rank) {
      ParameterSpec& slice = planned.emplace_back(spec);
      slice.slice = cuts.SliceOf(spec.name, rank);
      slice.name = absl::StrCat(spec.name, "@", rank);
      slice.shape = ShapeOfSlice(spec.shape, slice.slice);
      slice.holders.tensor = rank;
      slice.whole_name = spec.name;
      slice.whole_shape = spec.shape;
    }
  }
  return planned;
}

}  // namespace tributary
