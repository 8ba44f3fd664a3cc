// SPDX-License-Identifier: Apache-2.0
#include "server/store/contribution_checks.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/limits.h"
#include "server/store/rejection.h"

namespace tributary {
namespace {

// "learning rates 0.1, 0.01", with all their bits.
std::string RatesText(const std::vector<double>& rates) {
  if (rates.empty()) return "no learning rates";
  return absl::StrCat(
      rates.size() == 1 ? "learning rate " : "learning rates ",
      absl::StrJoin(rates, ", ", [](std::string* out, double rate) {
        absl::StrAppendFormat(out, "%.17g", rate);
      }));
}

absl::Status BadRates(const Contribution& c, const std::string& sent,
                      const std::string& wanted) {
  return Reject(Rejection::kRates,
                absl::InvalidArgumentError(
                    absl::StrCat("rank ", c.rank, " sent ", sent, " for step ",
                                 c.step + 1, ", wanted ", wanted)));
}

absl::Status CheckRates(const ShardBlocks& shard, const Contribution& c) {
  const std::vector<double>& rates = c.learning_rates;
  if (rates.empty()) return absl::OkStatus();
  // A message may hold more rates than an error should list.
  const std::string count = absl::StrCat(rates.size(), " learning rates");
  if (shard.training().optimizer.takes_running_averages) {
    return BadRates(c, count, "none: with local_sgd the workers apply theirs");
  }
  const auto groups =
      static_cast<size_t>(shard.phases().optimizer().num_groups());
  if (rates.size() != groups) {
    return BadRates(c, count,
                    absl::StrCat("none or ", groups,
                                 ", training.optimizer's and one for each of "
                                 "training.parameter_groups"));
  }
  for (const double rate : rates) {
    if (std::isfinite(rate) && rate >= 0) continue;
    return BadRates(c, RatesText(rates), "finite rates of 0 or more");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckNumbers(const ShardBlocks& shard, const Block& block,
                          const Contribution& c) {
  const ShardOptions& options = shard.options();
  if (c.rank >= static_cast<uint32_t>(options.num_workers)) {
    return Reject(Rejection::kRank, absl::InvalidArgumentError(absl::StrCat(
                                        "rank ", c.rank, ", wanted below ",
                                        options.num_workers)));
  }
  if (options.mesh &&
      !options.mesh->Holds(static_cast<int>(c.rank), block.holders)) {
    return Reject(Rejection::kRank,
                  absl::InvalidArgumentError(
                      absl::StrCat("rank ", c.rank, " holds nothing of block ",
                                   block.index, " of shard ", options.shard)));
  }
  if (c.step < 0 || c.step >= kMaxStep) {
    return Reject(Rejection::kStep,
                  absl::OutOfRangeError(
                      absl::StrCat("step ", c.step, " of rank ", c.rank,
                                   ", wanted 0 or more and below ", kMaxStep)));
  }
  if (c.base_version < 0 || c.base_version >= kMaxStep) {
    return Reject(Rejection::kStep,
                  absl::InvalidArgumentError(absl::StrCat(
                      "base_version ", c.base_version, " of rank ", c.rank,
                      ", wanted 0 or more and below ", kMaxStep)));
  }
  if (c.total_samples > kMaxTotalSamples) {
    return Reject(Rejection::kSamples,
                  absl::InvalidArgumentError(absl::StrCat(
                      "total_samples ", c.total_samples, " of rank ", c.rank,
                      ", wanted at most ", kMaxTotalSamples)));
  }
  return CheckRates(shard, c);
}

absl::Status CheckSize(const Block& block, const Contribution& c) {
  const size_t wanted =
      c.samples > 0 ? static_cast<size_t>(block.gradient_bytes()) : 0;
  if (c.payload.size() == wanted) return absl::OkStatus();
  return Reject(Rejection::kShape,
                absl::InvalidArgumentError(absl::StrCat(
                    "payload of ", c.payload.size(), " bytes for block ",
                    block.index, " of shard ", block.shard, " with ", c.samples,
                    " samples, wanted ", wanted)));
}

// Says what the contribution announced or, where its announcement agrees, how
// many samples it may have.
absl::Status WrongTotal(const GradientAggregator& aggregator,
                        const Contribution& sent) {
  const uint64_t announced = aggregator.announced_samples();
  if (announced > 0 && sent.total_samples > 0 &&
      sent.total_samples != announced) {
    return Reject(
        Rejection::kSamples,
        absl::InvalidArgumentError(absl::StrCat(
            "rank ", sent.rank, " announced ", sent.total_samples,
            " samples of all ranks for step ", sent.step + 1, ", wanted ",
            announced, " as another rank has announced")));
  }
  return Reject(
      Rejection::kSamples,
      absl::InvalidArgumentError(absl::StrCat(
          "rank ", sent.rank, " sent ", sent.samples, " samples for step ",
          sent.step + 1, ", for which ", aggregator.received_samples(),
          " have come from other ranks and ",
          announced > 0 ? announced : sent.total_samples,
          " are announced; wanted numbers that add up")));
}

absl::Status WrongRates(const GradientAggregator& aggregator,
                        const Contribution& sent) {
  const Contribution& origin = *aggregator.RatesOrigin();
  return BadRates(sent, RatesText(sent.learning_rates),
                  absl::StrCat(RatesText(origin.learning_rates), " as rank ",
                               origin.rank, " has sent"));
}

}  // namespace tributary
