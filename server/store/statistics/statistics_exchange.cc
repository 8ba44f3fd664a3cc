// SPDX-License-Identifier: Apache-2.0
#include "server/store/statistics/statistics_exchange.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/update/factored_moments.h"
#include "common/update/grain_sums.h"

namespace tributary {

StatisticsExchange::StatisticsExchange(const PartitionPlan& plan, int shard,
                                       Optimizer optimizer)
    : shard_(shard),
      optimizer_(std::move(optimizer)),
      parameters_(plan.parameters()),
      num_blocks_(plan.blocks(shard).size()) {
  for (Layout& layout : layouts_) layout.num_values.resize(plan.num_shards());
  for (int s = 0; s < plan.num_shards(); ++s) {
    for (const Block& block : plan.blocks(s)) {
      for (int k = 0; k < kStatisticsKinds; ++k) {
        Layout& layout = layouts_[k];
        int64_t& next = layout.num_values[s];
        if (s == shard) layout.block_first.push_back(next);
        for (const Slice& slice : block.slices) {
          layout.first.push_back(next);
          next += ValuesOf(static_cast<StatisticsKind>(k), slice);
        }
      }
      for (const Slice& slice : block.slices) slices_.push_back({s, slice});
    }
  }
}

int64_t StatisticsExchange::ValuesOf(StatisticsKind kind,
                                     const Slice& slice) const {
  switch (kind) {
    case StatisticsKind::kGradientNorm:
      return NumGrains(slice.size());
    case StatisticsKind::kFactors:
      return NumFactorSums(optimizer_, parameters_[slice.parameter],
                           slice.begin, slice.end);
    case StatisticsKind::kTrustRatio:
      return 2 * NumGrains(slice.size());
  }
  return 0;
}

StatisticsExchange::Gathered& StatisticsExchange::Find(int64_t step,
                                                       StatisticsKind kind) {
  auto [it, inserted] = gathered_.try_emplace({step, kind});
  if (inserted) {
    const std::vector<int64_t>& num_values = LayoutOf(kind).num_values;
    Gathered& gathered = it->second;
    gathered.shards.resize(num_values.size());
    gathered.local.resize(num_values[shard_]);
    gathered.blocks_left = num_blocks_;
    for (int64_t values : num_values) gathered.shards_left += values > 0;
  }
  return it->second;
}

bool StatisticsExchange::AddBlock(int64_t step, StatisticsKind kind, int block,
                                  absl::Span<const double> values) {
  Gathered& gathered = Find(step, kind);
  TRIBUTARY_CHECK(gathered.blocks_left > 0);
  std::copy(values.begin(), values.end(),
            gathered.local.begin() + LayoutOf(kind).block_first[block]);
  if (--gathered.blocks_left > 0) return false;
  if (gathered.local.empty()) return true;
  gathered.shards[shard_] = gathered.local;
  --gathered.shards_left;
  return true;
}

absl::Status StatisticsExchange::AddShard(int64_t step, StatisticsKind kind,
                                          int shard, std::vector<double> values,
                                          bool* complete) {
  *complete = false;
  const auto wanted = static_cast<size_t>(LayoutOf(kind).num_values[shard]);
  if (values.size() != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("shard ", shard, " sent ", values.size(),
                     " statistics for step ", step, ", wanted ", wanted));
  }
  if (step < oldest_step_) return absl::OkStatus();
  Gathered& gathered = Find(step, kind);
  if (!gathered.shards[shard].empty() || wanted == 0) return absl::OkStatus();
  gathered.shards[shard] = std::move(values);
  *complete = --gathered.shards_left == 0 && gathered.blocks_left == 0;
  return absl::OkStatus();
}

std::optional<std::vector<double>> StatisticsExchange::Local(
    int64_t step, StatisticsKind kind) const {
  if (num_blocks_ == 0) return std::vector<double>();
  auto it = gathered_.find({step, kind});
  if (it == gathered_.end() || it->second.blocks_left > 0) return std::nullopt;
  return it->second.local;
}

bool StatisticsExchange::Complete(int64_t step, StatisticsKind kind) const {
  auto it = gathered_.find({step, kind});
  return it != gathered_.end() && it->second.shards_left == 0 &&
         it->second.blocks_left == 0;
}

std::vector<int> StatisticsExchange::MissingShards() const {
  std::vector<int> missing;
  if (gathered_.empty()) return missing;
  const auto& [key, newest] = *gathered_.rbegin();
  const std::vector<int64_t>& num_values = LayoutOf(key.second).num_values;
  for (size_t s = 0; s < num_values.size(); ++s) {
    if (num_values[s] > 0 && newest.shards[s].empty()) {
      missing.push_back(static_cast<int>(s));
    }
  }
  return missing;
}

std::vector<std::vector<double>> StatisticsExchange::PerParameter(
    int64_t step, StatisticsKind kind) const {
  const Gathered& gathered = gathered_.at({step, kind});
  std::vector<GrainValues> stretches;
  for (size_t i = 0; i < slices_.size(); ++i) {
    const Slice& slice = slices_[i].slice;
    stretches.push_back({.parameter = slice.parameter,
                         .begin = slice.begin,
                         .num_grains = NumGrains(slice.size()),
                         .values = ValuesAt(gathered, kind, i)});
  }
  return SumGrains(std::move(stretches),
                   kind == StatisticsKind::kTrustRatio ? 2 : 1,
                   parameters_.size());
}

std::vector<std::vector<double>> StatisticsExchange::FactorTotals(
    int64_t step) const {
  constexpr auto kKind = StatisticsKind::kFactors;
  const Gathered& gathered = gathered_.at({step, kKind});
  std::vector<FactorSums> sums;
  for (size_t i = 0; i < slices_.size(); ++i) {
    const Slice& slice = slices_[i].slice;
    sums.push_back({slice.parameter, slice.begin, slice.end,
                    ValuesAt(gathered, kKind, i)});
  }
  return AddFactorSums(optimizer_, parameters_, sums);
}

void StatisticsExchange::ForgetBefore(int64_t step) {
  oldest_step_ = std::max(oldest_step_, step);
  gathered_.erase(
      gathered_.begin(),
      gathered_.lower_bound({oldest_step_, StatisticsKind::kGradientNorm}));
}

}  // namespace tributary
