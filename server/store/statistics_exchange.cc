#include "server/store/statistics_exchange.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/update/grain_sums.h"

namespace tributary {

StatisticsExchange::StatisticsExchange(const PartitionPlan& plan, int shard)
    : shard_(shard),
      num_parameters_(plan.parameters().size()),
      num_blocks_(plan.blocks(shard).size()) {
  for (int s = 0; s < plan.num_shards(); ++s) {
    int64_t grains = 0;
    for (const Block& block : plan.blocks(s)) {
      if (s == shard) first_grain_.push_back(grains);
      for (const Slice& slice : block.slices) {
        slices_.push_back({s, slice, grains});
        grains += NumGrains(slice.size());
      }
    }
    num_grains_.push_back(grains);
  }
}

StatisticsExchange::Gathered& StatisticsExchange::Find(int64_t step,
                                                       StatisticsKind kind) {
  auto [it, inserted] = gathered_.try_emplace({step, kind});
  if (inserted) {
    Gathered& gathered = it->second;
    gathered.shards.resize(num_grains_.size());
    gathered.local.resize(num_grains_[shard_] * ValuesPerGrain(kind));
    gathered.blocks_left = num_blocks_;
    gathered.shards_left = num_grains_.size();
    for (int64_t grains : num_grains_) {
      if (grains == 0) --gathered.shards_left;  // holds no elements
    }
  }
  return it->second;
}

bool StatisticsExchange::AddBlock(int64_t step, StatisticsKind kind, int block,
                                  absl::Span<const double> values) {
  Gathered& gathered = Find(step, kind);
  TRIBUTARY_CHECK(gathered.blocks_left > 0);
  std::copy(
      values.begin(), values.end(),
      gathered.local.begin() + first_grain_[block] * ValuesPerGrain(kind));
  if (--gathered.blocks_left > 0) return false;
  gathered.shards[shard_] = gathered.local;
  --gathered.shards_left;
  return true;
}

absl::Status StatisticsExchange::AddShard(int64_t step, StatisticsKind kind,
                                          int shard, std::vector<double> values,
                                          bool* complete) {
  *complete = false;
  const size_t wanted = num_grains_[shard] * ValuesPerGrain(kind);
  if (values.size() != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("shard ", shard, " sent ", values.size(),
                     " statistics for step ", step, ", wanted ", wanted));
  }
  if (step < oldest_step_) return absl::OkStatus();
  Gathered& gathered = Find(step, kind);
  if (!gathered.shards[shard].empty() || wanted == 0) return absl::OkStatus();
  gathered.shards[shard] = std::move(values);
  *complete = --gathered.shards_left == 0;
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
  return it != gathered_.end() && it->second.shards_left == 0;
}

std::vector<int> StatisticsExchange::MissingShards() const {
  std::vector<int> missing;
  if (gathered_.empty()) return missing;
  const Gathered& newest = gathered_.rbegin()->second;
  for (size_t s = 0; s < num_grains_.size(); ++s) {
    if (num_grains_[s] > 0 && newest.shards[s].empty()) {
      missing.push_back(static_cast<int>(s));
    }
  }
  return missing;
}

std::vector<std::vector<double>> StatisticsExchange::PerParameter(
    int64_t step, StatisticsKind kind) const {
  const Gathered& gathered = gathered_.at({step, kind});
  const int per_grain = ValuesPerGrain(kind);
  std::vector<GrainValues> stretches;
  for (const SliceGrains& s : slices_) {
    stretches.push_back({.parameter = s.slice.parameter,
                         .begin = s.slice.begin,
                         .num_grains = NumGrains(s.slice.size()),
                         .values = gathered.shards[s.shard].data() +
                                   s.first_grain * per_grain});
  }
  return SumGrains(std::move(stretches), per_grain, num_parameters_);
}

void StatisticsExchange::ForgetBefore(int64_t step) {
  oldest_step_ = std::max(oldest_step_, step);
  gathered_.erase(
      gathered_.begin(),
      gathered_.lower_bound({oldest_step_, StatisticsKind::kGradientNorm}));
}

}  // namespace tributary
