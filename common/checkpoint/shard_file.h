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
#include "common/checkpoint/paged_file.h"
#include "common/plan/partition_plan.h"
#include "tributary/v1/checkpoint.pb.h"

namespace tributary {

// What a server's file says before its tensors; enough to read it alone.
struct ShardFileHeader {
  uint64_t job_id = 0;
  uint64_t lineage = 0;     // CheckpointManifest.lineage
  uint64_t plan_epoch = 0;  // under which the step was made
  int64_t step = 0;         // optimizer steps applied
  int shard = 0;
  int num_shards = 1;
  ParameterSpecs parameters;
  std::vector<std::string> state_names;

  friend bool operator==(const ShardFileHeader&,
                         const ShardFileHeader&) = default;
};

// A block as it stands in memory; whoever writes it keeps it unchanged until
// the call returns.
struct BlockImage {
  absl::Span<const Slice> slices;
  const float* weights = nullptr;
  std::vector<const float*> state;  // one for each of the header's state_names
  int64_t num_elements = 0;         // of each tensor: all slices together
};

// "shard-001-of-003-00000000075bcd15-e0002.ckpt": with the job's id in hex and
// the plan epoch, so that no two processes ever write the same file. Without an
// epoch, as files of earlier versions are: "shard-001-of-003.ckpt".
std::string ShardFileName(int shard, int num_shards, uint64_t job_id = 0,
                          uint64_t plan_epoch = 0);
// What the names of all files that a job writes under one plan have in common:
// "-00000000075bcd15-e0002".
std::string WriterTag(uint64_t job_id, uint64_t plan_epoch);

// What holds for every file of a checkpoint: parameters that a PartitionPlan
// takes, and states with names of their own, at most kMaxStates of them.
inline constexpr int kMaxStates = 16;
absl::Status CheckTensorNames(const ParameterSpecs& parameters,
                              absl::Span<const std::string> state_names);

// Writes folder/ShardFileName: aside, to the disk, then under its name, so that
// the file is whole or not there and a file of the name stands until then.
// After an error nothing of it stays. ResourceExhausted: no room on the disk.
// DataLoss: the disk failed. Unavailable: another error of the system; all name
// the path. InvalidArgument: the blocks and the header do not fit each other.
// Cancelled: `cancelled`, which is asked before each block and before the file
// gets its name, said so.
absl::StatusOr<v1::CheckpointFile> WriteShardFile(
    const std::string& folder, const ShardFileHeader& header,
    absl::Span<const BlockImage> blocks,
    const std::function<bool()>& cancelled = nullptr);

// A shard file open for reading. Opening reads and checks all but the tensors;
// these are checked page by page as they are read. Any number of threads may
// read. DataLoss with the path and the byte: what is there is no shard file, or
// damaged.
class ShardFile {
 public:
  // Elements [begin, end) of a parameter, where they stand in the file.
  struct Range {
    int parameter = 0;
    int64_t begin = 0;
    int64_t end = 0;
    int64_t offset = 0;  // of the first weight within the data, in bytes
    int64_t stride = 0;  // from a weight to its first state, and so on
  };

  // NotFound: there is no such file. `compares`: for file().CompareChecksum.
  static absl::StatusOr<std::unique_ptr<ShardFile>> Open(
      const std::string& path, bool compares = false);
  // The same for a file in memory, which outlives the object; `name` stands in
  // the errors.
  static absl::StatusOr<std::unique_ptr<ShardFile>> Parse(
      const std::string& name, absl::string_view bytes);

  const ShardFileHeader& header() const { return header_; }
  // In the order of the data. Whether some overlap is for CheckpointReader,
  // which sees all files.
  const std::vector<Range>& ranges() const { return ranges_; }
  const PagedFile& file() const { return file_; }

  // Reads values.size() elements of a range, from element `first` of the
  // parameter on: weights (tensor 0) or a state (1 + its place). OutOfRange
  // when the range has not so many.
  absl::Status Read(const Range& range, int tensor, int64_t first,
                    absl::Span<float> values, PageBuffer* buffer) const;

 private:
  explicit ShardFile(PagedFile file) : file_(std::move(file)) {}
  static absl::StatusOr<std::unique_ptr<ShardFile>> Create(
      absl::StatusOr<PagedFile> file);
  absl::Status ReadIndex(const v1::CheckpointShard& index);

  const PagedFile file_;
  ShardFileHeader header_;
  std::vector<Range> ranges_;
};

}  // namespace tributary
