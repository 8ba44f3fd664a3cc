// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/read_probes.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/terminal/json_lines.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

using nlohmann::json;

ReplayedRank::Tensor TensorOf(const json& line) {
  ReplayedRank::Tensor tensor;
  tensor.name = line.value("name", "");
  tensor.weight_crc = line.value("weight_crc32c", uint32_t{0});
  const auto crc = line.find("gradient_crc32c");
  if (crc == line.end() || !crc->is_number()) return tensor;
  tensor.gradient_crc = crc->get<uint32_t>();
  const auto norm = line.find("gradient_norm");
  tensor.gradient_norm = norm != line.end() && norm->is_number()
                             ? norm->get<double>()
                             : std::numeric_limits<double>::quiet_NaN();
  return tensor;
}

ReplayedRank RankOf(const json& line) {
  ReplayedRank rank;
  rank.rank = line.value("rank", 0);
  const auto samples = line.find("samples");
  if (samples != line.end() && samples->is_number()) {
    rank.samples = samples->get<int64_t>();
    const auto sum = line.find("loss_sum");
    rank.loss_mean =
        sum != line.end() && sum->is_number()
            ? sum->get<double>() / static_cast<double>(*rank.samples)
            : std::numeric_limits<double>::quiet_NaN();
  }
  for (const json& tensor : line.value("tensors", json::array())) {
    rank.tensors.push_back(TensorOf(tensor));
  }
  return rank;
}

}  // namespace

absl::StatusOr<std::map<int64_t, ReplayedStep>> ReadProbes(
    const std::string& folder, int workers,
    const std::map<int64_t, double>& losses, int64_t first_step,
    int64_t last_step) {
  std::map<int64_t, ReplayedStep> steps;
  for (int rank = 0; rank < workers; ++rank) {
    TRIBUTARY_RETURN_IF_ERROR(ForEachJsonLine(
        absl::StrCat(folder, "/rank-", rank, ".jsonl"), [&](const json& line) {
          steps[line.value("step", int64_t{0})].ranks.push_back(RankOf(line));
        }));
  }
  for (int64_t step = first_step; step <= last_step; ++step) {
    const auto loss = losses.find(step);
    if (loss == losses.end() ||
        steps[step].ranks.size() != static_cast<size_t>(workers)) {
      return absl::DataLossError(
          absl::StrCat("step ", step, " was not computed by every rank"));
    }
    steps[step].loss = loss->second;
  }
  return steps;
}

}  // namespace tributary
