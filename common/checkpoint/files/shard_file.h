// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/parameter_spec.h"
#include "common/checkpoint/files/paged_file.h"
#include "common/plan/partition_plan.h"
#include "tributary/v1/checkpoint.pb.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// The header fields that are equal in all files of one process and plan.
struct ShardFileSeries {
  // kShard, or kResidual: the file holds the residual of rank `shard` of
  // `num_shards` in place of weights (residual_file.h).
  PagedFileKind kind = PagedFileKind::kShard;
  uint64_t job_id = 0;
  uint64_t lineage = 0;     // CheckpointManifest.lineage
  uint64_t plan_epoch = 0;  // the plan that computed the steps
  int shard = 0;
  int num_shards = 1;
  ParameterSpecs parameters;
  std::vector<std::string> state_names;
  // True if the writer computes CheckpointFile.sha256. Not part of the header.
  bool digests = false;

  friend bool operator==(const ShardFileSeries&,
                         const ShardFileSeries&) = default;
};

// The files that a server writes. Shards without blocks write none and are not
// counted.
ShardFileSeries SeriesOf(const v1::Plan& plan, const PartitionPlan& partition,
                         int shard, std::vector<std::string> state_names);

// The contents of a server's file before its tensors; sufficient to read the
// file without the others.
struct ShardFileHeader : ShardFileSeries {
  int64_t step = 0;           // steps done
  int64_t skipped_steps = 0;  // of these: they changed nothing

  friend bool operator==(const ShardFileHeader&,
                         const ShardFileHeader&) = default;
};

// A block in memory. Its owner keeps it unchanged until the call returns.
struct BlockImage {
  absl::Span<const Slice> slices;
  const float* weights = nullptr;
  std::vector<const float*> state;  // one for each of the header's state_names
  int64_t num_elements = 0;         // per tensor, over all slices
};

// The limit of the files of one kind in a checkpoint: one file for each server,
// or one for each rank.
int MaxFiles(PagedFileKind kind);

// "shard-001-of-003-00000000075bcd15-e0002.ckpt": the job's id in hex and the
// plan epoch make sure that no two processes ever write the same file. Without
// an epoch, as in files of earlier versions: "shard-001-of-003.ckpt".
std::string ShardFileName(int shard, int num_shards, uint64_t job_id = 0,
                          uint64_t plan_epoch = 0);
// "residual-001-of-003-00000000075bcd15-e0002.ckpt" for a kResidual.
std::string FileNameOf(const ShardFileSeries& series);
// The part that the names of all files of one job and plan share:
// "-00000000075bcd15-e0002".
std::string WriterTag(uint64_t job_id, uint64_t plan_epoch);

// Checks parameters and states of any checkpoint file: PartitionPlan must
// accept the parameters, and the states need unique names, at most kMaxStates.
absl::Status CheckTensorNames(const ParameterSpecs& parameters,
                              absl::Span<const std::string> state_names);

// Writes folder/FileNameOf: first to a temporary file, which is synced and then
// renamed. So the file is complete or absent, and an existing file of that name
// stays until the rename. After an error no new file remains.
// ResourceExhausted: the disk is full. DataLoss: the disk failed. Unavailable:
// another system error. These three name the path. InvalidArgument: blocks and
// header do not match. Cancelled: `cancelled` returned true; it is called
// before each block and before the rename.
absl::StatusOr<v1::CheckpointFile> WriteShardFile(
    const std::string& folder, const ShardFileHeader& header,
    absl::Span<const BlockImage> blocks,
    const std::function<bool()>& cancelled = nullptr);

// A shard file open for reading. Opening reads and checks everything except the
// tensors, which are checked page by page as they are read. Any number of
// threads may read. DataLoss with path and byte: it is not a shard file, or
// damaged.
class ShardFile {
 public:
  // Elements [begin, end) of a parameter and their position in the file.
  struct Range {
    int parameter = 0;
    int64_t begin = 0;
    int64_t end = 0;
    int64_t offset = 0;  // bytes of data before the first weight
    int64_t stride = 0;  // bytes from a weight to its first state, and so on
  };

  // NotFound: there is no such file. `comparing`: allows file().Compare.
  static absl::StatusOr<std::unique_ptr<ShardFile>> Open(
      const std::string& path, Comparing comparing = Comparing::kNothing,
      PagedFileKind kind = PagedFileKind::kShard);
  // The same for a file in memory, which outlives the object; errors contain
  // `name`.
  static absl::StatusOr<std::unique_ptr<ShardFile>> Parse(
      const std::string& name, absl::string_view bytes);

  const ShardFileHeader& header() const { return header_; }
  // In the order of the data. CheckpointReader checks for overlaps, because it
  // sees all files.
  const std::vector<Range>& ranges() const { return ranges_; }
  const PagedFile& file() const { return file_; }

  // Reads values.size() elements of a range, starting at element `first` of the
  // parameter: weights (tensor 0) or a state (1 + its index). OutOfRange when
  // the range has too few.
  absl::Status Read(const Range& range, int tensor, int64_t first,
                    absl::Span<float> values, PageBuffer* buffer) const;

 private:
  explicit ShardFile(PagedFile file) : file_(std::move(file)) {}
  static absl::StatusOr<std::unique_ptr<ShardFile>> Create(
      absl::StatusOr<PagedFile> file, PagedFileKind kind);
  absl::Status ReadIndex(const v1::CheckpointShard& index);

  const PagedFile file_;
  ShardFileHeader header_;
  std::vector<Range> ranges_;
};

}  // namespace tributary
