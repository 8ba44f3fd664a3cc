// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/parallel/exchange_samples.h"

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "common/wire/crc32c/crc32c.h"

namespace tributary {
namespace {

// A rank's message. It is sent in the machine's byte order, as collectives send
// float32: all ranks must have the same one.
struct StepOfRank {
  uint64_t samples = 0;
  uint32_t rates = 0;  // a checksum
  uint32_t unused = 0;
};
constexpr int64_t kFloats = sizeof(StepOfRank) / sizeof(float);
static_assert(sizeof(StepOfRank) % sizeof(float) == 0);

}  // namespace

absl::StatusOr<std::vector<uint64_t>> ExchangeSamples(
    const Communicator& group, RankSums& sums, int64_t step, uint64_t samples,
    const std::vector<double>& rates) {
  std::vector<StepOfRank> steps(group.size());
  steps[group.rank()] = {
      .samples = samples,
      .rates = Crc32c(rates.data(), rates.size() * sizeof(double))};
  std::vector<int64_t> bounds;
  for (int r = 0; r <= group.size(); ++r) bounds.push_back(kFloats * r);
  TRIBUTARY_RETURN_IF_ERROR(
      sums.AllGather(reinterpret_cast<float*>(steps.data()), bounds));
  std::vector<uint64_t> all;
  for (int r = 0; r < group.size(); ++r) {
    if (steps[r].rates != steps[0].rates) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", r, " has other learning rates in step ",
                       step + 1, " than rank 0; every rank must set the same"));
    }
    all.push_back(steps[r].samples);
  }
  return all;
}

}  // namespace tributary
