#include "server/store/statistics_exchange.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace tributary {

StatisticsExchange::StatisticsExchange(const PartitionPlan& plan, int shard)
    : shard_(shard),
      num_parameters_(plan.parameters().size()),
      num_blocks_(plan.blocks(shard).size()) {
  int64_t grains = 0;
  for (const Block& block : plan.blocks(shard)) {
    first_grain_.push_back(grains);
    for (const Slice& slice : block.slices) {
      grains += (slice.size() + kGrainElements - 1) / kGrainElements;
    }
  }
  for (int s = 0; s < plan.num_shards(); ++s) {
    order_.push_back(plan.Grains(s));
    for (size_t g = 0; g < order_[s].size(); ++g) canonical_.push_back({s, g});
  }
  std::sort(canonical_.begin(), canonical_.end(),
            [this](const auto& a, const auto& b) {
              return order_[a.first][a.second] < order_[b.first][b.second];
            });
}

StatisticsExchange::Gathered& StatisticsExchange::Find(int64_t step,
                                                       StatisticsKind kind) {
  auto [it, inserted] = gathered_.try_emplace({step, kind});
  if (inserted) {
    Gathered& gathered = it->second;
    gathered.shards.resize(order_.size());
    gathered.local.resize(order_[shard_].size() * ValuesPerGrain(kind));
    gathered.blocks_left = num_blocks_;
    gathered.shards_left = order_.size();
    for (size_t s = 0; s < order_.size(); ++s) {
      if (order_[s].empty()) --gathered.shards_left;  // holds no elements
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
  const size_t wanted = order_[shard].size() * ValuesPerGrain(kind);
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
  for (size_t s = 0; s < order_.size(); ++s) {
    if (!order_[s].empty() && newest.shards[s].empty()) {
      missing.push_back(static_cast<int>(s));
    }
  }
  return missing;
}

std::vector<double> StatisticsExchange::PerParameter(int64_t step,
                                                     StatisticsKind kind,
                                                     int value) const {
  const Gathered& gathered = gathered_.at({step, kind});
  const int stride = ValuesPerGrain(kind);
  std::vector<double> sums(num_parameters_, 0.0);
  for (const auto& [shard, grain] : canonical_) {
    sums[order_[shard][grain].parameter] +=
        gathered.shards[shard][grain * stride + value];
  }
  return sums;
}

void StatisticsExchange::ForgetBefore(int64_t step) {
  oldest_step_ = std::max(oldest_step_, step);
  gathered_.erase(
      gathered_.begin(),
      gathered_.lower_bound({oldest_step_, StatisticsKind::kGradientNorm}));
}

}  // namespace tributary
