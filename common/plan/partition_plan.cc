// SPDX-License-Identifier: Apache-2.0
#include "common/plan/partition_plan.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// Packs one shard's slices into blocks as they come.
class BlockPacker {
 public:
  BlockPacker(int shard, int64_t max_elements)
      : shard_(shard), max_elements_(max_elements) {}

  int64_t size() const { return shard_size_; }

  // Cuts [begin, end) at grains wherever a block is full. A slice that fits a
  // block of its own is not cut to fill up the previous block.
  void Add(int parameter, const Holders& holders, int64_t begin, int64_t end) {
    while (begin < end) {
      if (blocks_.empty() || blocks_.back().holders != holders ||
          blocks_.back().size >= max_elements_ ||
          (blocks_.back().size > 0 &&
           blocks_.back().size + end - begin > max_elements_)) {
        Open(holders);
      }
      Block& block = blocks_.back();
      const int64_t take = std::min(end - begin, WholeGrains(max_elements_));
      block.slices.push_back({parameter, begin, begin + take, block.size});
      block.size += take;
      shard_size_ += take;
      begin += take;
    }
  }

  std::vector<Block> Take() { return std::move(blocks_); }

 private:
  void Open(const Holders& holders) {
    Block block;
    block.holders = holders;
    block.shard = shard_;
    block.index = static_cast<int>(blocks_.size());
    block.offset = shard_size_;
    blocks_.push_back(std::move(block));
  }

  static int64_t WholeGrains(int64_t elements) {
    return NumGrains(elements) * kGrainElements;
  }

  const int shard_;
  const int64_t max_elements_;  // a slice may exceed it to fill a grain
  int64_t shard_size_ = 0;
  std::vector<Block> blocks_;
};

void AddParameter(int parameter, const ParameterSpec& spec,
                  std::vector<BlockPacker>& packers) {
  const int64_t size = spec.size();
  const int64_t shards = static_cast<int64_t>(packers.size());
  if (size < PartitionPlan::kSplitElements || shards == 1) {
    auto least = std::min_element(
        packers.begin(), packers.end(),
        [](const auto& a, const auto& b) { return a.size() < b.size(); });
    least->Add(parameter, spec.holders, 0, size);
    return;
  }
  const int64_t grains = NumGrains(size);
  for (int64_t s = 0; s < shards; ++s) {
    const int64_t begin = grains * s / shards * kGrainElements;
    const int64_t end =
        std::min(size, grains * (s + 1) / shards * kGrainElements);
    packers[s].Add(parameter, spec.holders, begin, end);
  }
}

absl::Status CheckSlice(const ParameterSpec& spec) {
  if (spec.whole_name.empty()) return absl::OkStatus();
  const ParameterSlice& slice = spec.slice;
  const auto& shape = spec.whole_shape;
  bool possible = slice.dim >= 0 &&
                  slice.dim < static_cast<int>(shape.size()) &&
                  shape.size() == spec.shape.size() && slice.groups >= 1;
  for (size_t d = 0; possible && d < shape.size(); ++d) {
    possible = shape[d] >= 1 && shape[d] <= PartitionPlan::kMaxElements;
    if (static_cast<int>(d) != slice.dim) {
      possible = possible && shape[d] == spec.shape[d];
    }
  }
  possible = possible && shape[slice.dim] % slice.groups == 0 &&
             slice.begin >= 0 && slice.begin < slice.end &&
             slice.end <= shape[slice.dim] / slice.groups &&
             spec.shape[slice.dim] == slice.groups * (slice.end - slice.begin);
  if (possible) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "parameter ", spec.name, " is no slice of ", spec.whole_name));
}

// Checks that the slices of a parameter follow each other and make up the
// whole. The code that assembles parameters relies on this.
absl::Status CheckWholes(const ParameterSpecs& parameters,
                         std::set<std::string> names) {
  size_t p = 0;
  while (p < parameters.size()) {
    const ParameterSpec& first = parameters[p];
    if (first.whole_name.empty()) {
      ++p;
      continue;
    }
    const ParameterSlice& cut = first.slice;
    bool fits = names.insert(first.whole_name).second;
    int64_t next = 0;
    for (;
         p < parameters.size() && parameters[p].whole_name == first.whole_name;
         ++p) {
      const ParameterSpec& spec = parameters[p];
      fits = fits && spec.whole_shape == first.whole_shape &&
             spec.slice.dim == cut.dim && spec.slice.groups == cut.groups &&
             spec.slice.begin == next;
      next = spec.slice.end;
    }
    if (fits && next == first.whole_shape[cut.dim] / cut.groups) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the slices of parameter ", first.whole_name, " do not make it up"));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t Block::gradient_bytes() const {
  int64_t bytes = 0;
  for (const Slice& slice : slices) bytes += slice.gradient_bytes();
  return bytes;
}

int64_t Block::weights_bytes() const {
  int64_t bytes = 0;
  for (const Slice& slice : slices) {
    bytes += slice.weights_encoding->Bytes(slice.size());
  }
  return bytes;
}

bool Block::answers_floats() const {
  return std::all_of(slices.begin(), slices.end(), [](const Slice& slice) {
    return slice.weights_encoding == &Float32Encoding();
  });
}

bool Block::sends_floats() const {
  return std::all_of(slices.begin(), slices.end(), [](const Slice& slice) {
    return slice.encoding == &Float32Encoding();
  });
}

absl::Status PartitionPlan::CheckParameters(const ParameterSpecs& parameters) {
  if (parameters.empty()) {
    return absl::InvalidArgumentError("a plan needs at least one parameter");
  }
  if (parameters.size() > kMaxParameters) {
    return absl::InvalidArgumentError(
        absl::StrCat("a plan has at most ", kMaxParameters, " parameters, got ",
                     parameters.size()));
  }
  std::set<std::string> names;
  int64_t num_elements = 0;
  for (const ParameterSpec& spec : parameters) {
    int64_t size = 1;
    for (int64_t extent : spec.shape) {
      if (extent < 1 || extent > kMaxElements / size) {
        return absl::InvalidArgumentError(
            absl::StrCat("parameter ", spec.name, " has extent ", extent,
                         "; wanted 1 or more and at most ", kMaxElements,
                         " elements in all"));
      }
      size *= extent;
    }
    if (num_elements > kMaxElements - size) {
      return absl::InvalidArgumentError(
          absl::StrCat("the model has more than ", kMaxElements, " elements"));
    }
    num_elements += size;
    TRIBUTARY_RETURN_IF_ERROR(CheckSlice(spec));
    if (!(spec.running_momentum >= 0 && spec.running_momentum <= 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter ", spec.name, " moves by ",
                       spec.running_momentum, " an update; wanted 0 to 1"));
    }
    if (!names.insert(spec.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two parameters are named ", spec.name));
    }
  }
  return CheckWholes(parameters, std::move(names));
}

uint64_t PartitionPlan::DefaultBucketBytes(double weight_bytes, int num_shards,
                                           bool one_machine) {
  constexpr double kOneMachine = 4 << 20;
  constexpr double kBlocksOfAShard = 32;
  constexpr double kSmallestBlock = kMinBlockElements * sizeof(float);
  constexpr double kLargestBlock = 1 << 20;
  const double part = weight_bytes / num_shards / kBlocksOfAShard;
  const double block =
      one_machine
          ? std::max(kOneMachine / num_shards, std::min(part, kOneMachine))
          : std::clamp(part, kSmallestBlock, kLargestBlock);
  // Far fewer blocks than kMaxBlocks, whatever the model.
  const double enough = 4 * weight_bytes / static_cast<double>(kMaxBlocks);
  return static_cast<uint64_t>(
      std::min<double>(std::max(block, enough) * num_shards, kMaxBucketBytes));
}

absl::StatusOr<PartitionPlan> PartitionPlan::Create(
    ParameterSpecs parameters, int num_shards, uint64_t bucket_bytes,
    int64_t min_block_elements) {
  if (num_shards < 1 || num_shards > kMaxShards) {
    return absl::InvalidArgumentError(absl::StrCat(
        "num_shards must be 1 to ", kMaxShards, ", got ", num_shards));
  }
  if (bucket_bytes < 1 || bucket_bytes > kMaxBucketBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "bucket_bytes must be 1 to ", kMaxBucketBytes, ", got ", bucket_bytes));
  }
  if (min_block_elements < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "min_block_elements must be 1 or more, got ", min_block_elements));
  }
  TRIBUTARY_RETURN_IF_ERROR(CheckParameters(parameters));

  const int64_t block_elements = std::max<int64_t>(
      min_block_elements, static_cast<int64_t>(bucket_bytes / sizeof(float)) /
                              num_shards / kGrainElements * kGrainElements);
  int64_t most_blocks = num_shards;
  for (const ParameterSpec& spec : parameters) {
    most_blocks += spec.size() / block_elements + 1;
  }
  if (most_blocks > kMaxBlocks) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model makes up to ", most_blocks, " blocks of ",
                     block_elements, " elements; wanted at most ", kMaxBlocks,
                     ": raise bucket_bytes, now ", bucket_bytes));
  }
  std::vector<BlockPacker> packers;
  for (int s = 0; s < num_shards; ++s) packers.emplace_back(s, block_elements);

  PartitionPlan plan;
  for (int p = static_cast<int>(parameters.size()) - 1; p >= 0; --p) {
    AddParameter(p, parameters[p], packers);
    plan.num_elements_ += parameters[p].size();
  }
  for (BlockPacker& packer : packers) plan.blocks_.push_back(packer.Take());
  plan.parameters_ = std::move(parameters);
  return plan;
}

int64_t PartitionPlan::shard_elements(int shard) const {
  const std::vector<Block>& blocks = blocks_[shard];
  return blocks.empty() ? 0 : blocks.back().offset + blocks.back().size;
}

void PartitionPlan::SetEncodings(const Encoding& gradients,
                                 const Encoding& weights) {
  for (std::vector<Block>& blocks : blocks_) {
    for (Block& block : blocks) {
      for (Slice& slice : block.slices) {
        if (parameters_[slice.parameter].is_running()) continue;
        slice.encoding = &gradients;
        slice.weights_encoding = &weights;
      }
    }
  }
}

int PartitionPlan::num_blocks() const {
  size_t count = 0;
  for (const std::vector<Block>& blocks : blocks_) count += blocks.size();
  return static_cast<int>(count);
}

std::vector<Grain> PartitionPlan::Grains(int shard) const {
  std::vector<Grain> grains;
  for (const Block& block : blocks_[shard]) {
    for (const Slice& slice : block.slices) {
      for (int64_t i = slice.begin; i < slice.end; i += kGrainElements) {
        grains.push_back({slice.parameter, i / kGrainElements});
      }
    }
  }
  return grains;
}

void PartitionPlan::Scatter(const Block& block, const float* payload,
                            absl::Span<float* const> tensors) {
  for (const Slice& slice : block.slices) {
    std::memcpy(tensors[slice.parameter] + slice.begin, payload + slice.offset,
                slice.size() * sizeof(float));
  }
}

void PartitionPlan::Gather(const Block& block,
                           absl::Span<const float* const> tensors,
                           float* payload) {
  for (const Slice& slice : block.slices) {
    std::memcpy(payload + slice.offset, tensors[slice.parameter] + slice.begin,
                slice.size() * sizeof(float));
  }
}

}  // namespace tributary
