// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/checkpoint/flip_weight.h"

#include <bit>
#include <filesystem>
#include <memory>
#include <vector>

#include "common/checkpoint/checkpoint_directory.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/manifest.h"
#include "common/plan/partition_plan.h"
#include "common/status/status_macros.h"

namespace tributary::testing {

absl::Status FlipWeight(const std::string& folder, int parameter,
                        int64_t element) {
  v1::CheckpointManifest manifest;
  ParameterSpecs parameters;
  std::vector<std::string> states;
  std::vector<std::vector<float>> values;  // [tensor x parameter]
  {
    TRIBUTARY_ASSIGN_OR_RETURN(const auto reader,
                               CheckpointReader::Open(folder));
    manifest = reader->manifest();
    parameters = reader->parameters();
    states = reader->state_names();
    for (size_t tensor = 0; tensor <= states.size(); ++tensor) {
      for (size_t p = 0; p < parameters.size(); ++p) {
        std::vector<float>& read = values.emplace_back(parameters[p].size());
        TRIBUTARY_RETURN_IF_ERROR(reader->ReadRange(static_cast<int>(tensor),
                                                    static_cast<int>(p), 0,
                                                    absl::MakeSpan(read)));
      }
    }
  }
  float& flipped = values[parameter][element];
  flipped = std::bit_cast<float>(std::bit_cast<uint32_t>(flipped) ^ 1);

  for (const v1::CheckpointFile& file : FilesOf(manifest)) {
    std::filesystem::remove(folder + "/" + file.name());
  }
  std::vector<Slice> slices;
  for (size_t p = 0; p < parameters.size(); ++p) {
    slices.push_back(
        {.parameter = static_cast<int>(p), .end = parameters[p].size()});
  }
  std::vector<BlockImage> images;
  for (size_t p = 0; p < parameters.size(); ++p) {
    BlockImage& image = images.emplace_back();
    image.slices = absl::MakeConstSpan(&slices[p], 1);
    image.num_elements = parameters[p].size();
    image.weights = values[p].data();
    for (size_t tensor = 1; tensor <= states.size(); ++tensor) {
      image.state.push_back(values[tensor * parameters.size() + p].data());
    }
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      const v1::CheckpointFile written,
      WriteShardFile(folder,
                     {{.job_id = manifest.job_id(),
                       .lineage = LineageOf(manifest),
                       .plan_epoch = manifest.plan_epoch(),
                       .shard = 0,
                       .num_shards = 1,
                       .parameters = parameters,
                       .state_names = states},
                      manifest.step()},
                     images));
  manifest.clear_files();
  *manifest.add_files() = written;
  return WriteManifest(std::filesystem::path(folder).parent_path().string(),
                       manifest);
}

}  // namespace tributary::testing
