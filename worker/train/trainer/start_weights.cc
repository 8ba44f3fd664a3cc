// SPDX-License-Identifier: Apache-2.0
#include "worker/train/trainer/start_weights.h"

#include <optional>
#include <utility>
#include <vector>

#include "common/files/safetensors.h"
#include "common/job/initial_tensors.h"
#include "common/job/job_options.h"
#include "common/layers/initializer.h"
#include "common/layers/model_parameters.h"
#include "common/plan/model_cut.h"
#include "common/plan/plan_codec.h"
#include "common/status/place.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// The file of model.initialize_from, and for each parameter its tensor there or
// kFromSeed.
struct InitialFile {
  SafetensorsReader reader;
  std::vector<int> sources;
};

absl::StatusOr<InitialFile> OpenInitialFile(const v1::ModelSpec& model) {
  TRIBUTARY_ASSIGN_OR_RETURN(SafetensorsReader reader,
                             SafetensorsReader::Open(model.initialize_from()));
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::vector<int> sources,
      MatchInitialTensors(Places(), model, reader.tensors()));
  return InitialFile{std::move(reader), std::move(sources)};
}

// The whole model's weights before the first step, in host memory.
absl::StatusOr<Tensors> InitialWeightsOf(const v1::JobSpec& job) {
  const ParameterSpecs parameters = ModelParameters(job.model());
  std::optional<InitialFile> file;
  if (!job.model().initialize_from().empty()) {
    TRIBUTARY_ASSIGN_OR_RETURN(file, OpenInitialFile(job.model()));
  }
  Tensors weights;
  for (size_t p = 0; p < parameters.size(); ++p) {
    weights.emplace_back(parameters[p].size());
    const absl::Span<float> values = absl::MakeSpan(weights.back());
    if (file.has_value() && file->sources[p] != kFromSeed) {
      TRIBUTARY_RETURN_IF_ERROR(
          file->reader.ReadFinite(file->sources[p], values));
    } else {
      InitialWeights(parameters, job.model(), job.seed(), static_cast<int>(p),
                     values);
    }
  }
  return weights;
}

}  // namespace

absl::StatusOr<int64_t> StartWeights(Member& member, const Replica& replica,
                                     const v1::Plan& plan,
                                     GradientSynchronizer* synchronizer) {
  const auto tell = [&](const RankProgress& progress) {
    member.StartAt(plan.epoch(), progress.steps, progress.begun);
  };
  const v1::JobSpec& job = member.job();
  if (StrategyOf(job).uses_servers() ? member.index() != 0
                                     : replica.place().data != 0) {
    return synchronizer->Start(nullptr, tell);
  }
  return synchronizer->Start(
      [&]() -> absl::StatusOr<Tensors> {
        TRIBUTARY_ASSIGN_OR_RETURN(const Tensors whole, InitialWeightsOf(job));
        const ParameterSpecs planned = FromProto(plan.parameters());
        Tensors cut = CutWhole(planned, whole);
        if (StrategyOf(job).uses_servers()) return cut;
        TRIBUTARY_ASSIGN_OR_RETURN(
            const std::vector<int> places,
            PlacesInPlan(replica.model()->parameters(), planned, replica.mesh(),
                         static_cast<int>(member.index())));
        Tensors own;
        for (int place : places) own.push_back(std::move(cut[place]));
        return own;
      },
      tell);
}

}  // namespace tributary
