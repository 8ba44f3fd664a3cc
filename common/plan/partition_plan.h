// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/parameter_spec.h"
#include "common/encoding/encoding.h"

namespace tributary {

// Elements of the unit in which parameters are cut and in which sums of squares
// are taken. A cut never falls inside a grain, so a norm added up grain by
// grain is the same for every number of servers.
inline constexpr int64_t kGrainElements = 1024;
// The grains of a slice that begins at a grain's border.
constexpr int64_t NumGrains(int64_t elements) {
  return (elements + kGrainElements - 1) / kGrainElements;
}

// Elements [begin, end) of one parameter.
struct Slice {
  int parameter = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t offset = 0;  // of its first element within its block
  // How the slice's gradient and its weights are written in messages.
  const Encoding* encoding = &Float32Encoding();
  const Encoding* weights_encoding = &Float32Encoding();

  int64_t size() const { return end - begin; }
  // Bytes of the slice's gradient in a message.
  int64_t gradient_bytes() const { return encoding->Bytes(size()); }
};

// The unit that one message carries and one lock guards: slices of a shard that
// become ready together in the backward pass, laid one behind the other.
struct Block {
  int shard = 0;
  int index = 0;       // within the shard, in backward order
  int64_t offset = 0;  // of its first element within the shard
  int64_t size = 0;    // elements
  std::vector<Slice> slices;
  Holders holders = {};  // of all its parameters

  int64_t bytes() const { return size * int64_t{sizeof(float)}; }
  // Bytes of the block's gradient in a message: those of its slices, in order.
  int64_t gradient_bytes() const;
  int64_t weights_bytes() const;  // and of its weights in an answer
  // True when all of the block's gradient, or all of its weights, is float32.
  bool sends_floats() const;
  bool answers_floats() const;
};

// A grain's place in the canonical order (parameter, then position).
struct Grain {
  int parameter = 0;
  int64_t index = 0;  // elements [index, index + 1) * kGrainElements

  friend bool operator<(const Grain& a, const Grain& b) {
    return std::tie(a.parameter, a.index) < std::tie(b.parameter, b.index);
  }
};

// Maps every parameter element to one block of one shard: a pure function of
// specs, number of shards and bucket size, so every process can compute it.
//
// Parameters are taken in backward order (last first). A parameter of at least
// kSplitElements is cut into one contiguous slice of whole grains per shard; a
// smaller one goes whole to the shard with the fewest bytes so far. A shard's
// slices are packed into blocks of at most bucket_bytes / num_shards, each of
// parameters that the same workers hold.
class PartitionPlan {
 public:
  static constexpr int kMaxShards = 256;
  static constexpr int64_t kSplitElements = 2 * kGrainElements;
  static constexpr int64_t kMaxElements = int64_t{1} << 40;
  // Bounds the memory: a few words can describe a huge model, and each block
  // takes memory before any weight arrives. By default it allows 256 GiB of
  // weights on one server.
  static constexpr int64_t kMaxBlocks = 1 << 16;
  static constexpr size_t kMaxParameters = 1 << 16;
  static constexpr int64_t kMinBlockElements = 16 * kGrainElements;

  // The bucket size of a job that names none. On one machine few large blocks
  // take the least processor time; several servers share 4 MiB, or have blocks
  // of up to 4 MiB each if the model has many of these. Over a link a server
  // answers a block only when all of it has arrived: with n blocks in a shard,
  // that wait is 1/n of the transfer (docs/decisions/block-size.md).
  static uint64_t DefaultBucketBytes(double weight_bytes, int num_shards,
                                     bool one_machine);

  // InvalidArgument: no or too many parameters, a shape that is empty or too
  // large, a duplicate name, slices that do not make up their parameter, a
  // running average's momentum out of range.
  static absl::Status CheckParameters(const ParameterSpecs& parameters);

  // Errors as CheckParameters; InvalidArgument also: shards or bucket_bytes out
  // of range, more blocks than kMaxBlocks. min_block_elements: the size limit
  // of a block is at least this, whatever the bucket; tests set less than the
  // default to get many blocks of a few elements.
  static absl::StatusOr<PartitionPlan> Create(
      ParameterSpecs parameters, int num_shards, uint64_t bucket_bytes,
      int64_t min_block_elements = kMinBlockElements);

  // Sets the encodings of gradients and weights in messages; they must outlive
  // the plan. A running average stays float32: a rounded average would move the
  // model itself.
  void SetEncodings(const Encoding& gradients, const Encoding& weights);

  const ParameterSpecs& parameters() const { return parameters_; }
  int num_shards() const { return static_cast<int>(blocks_.size()); }
  int64_t num_elements() const { return num_elements_; }

  // The blocks of a shard in backward order.
  const std::vector<Block>& blocks(int shard) const { return blocks_[shard]; }
  int64_t shard_elements(int shard) const;
  int num_blocks() const;

  // The shard's grains in the order of its blocks and their slices.
  std::vector<Grain> Grains(int shard) const;

  // Copies a block's elements to and from whole parameters; `tensors` has one
  // pointer per parameter.
  static void Scatter(const Block& block, const float* payload,
                      absl::Span<float* const> tensors);
  static void Gather(const Block& block, absl::Span<const float* const> tensors,
                     float* payload);

 private:
  PartitionPlan() = default;

  ParameterSpecs parameters_;
  int64_t num_elements_ = 0;
  std::vector<std::vector<Block>> blocks_;  // [shard][block]
};

}  // namespace tributary
