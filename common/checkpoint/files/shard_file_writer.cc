// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/failpoint.h"
#include "common/base/limits.h"
#include "common/checkpoint/files/shard_file.h"
#include "common/files/file_status.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

const char* NounOf(PagedFileKind kind) {
  return kind == PagedFileKind::kResidual ? "residual" : "shard";
}

absl::Status CheckBlock(const ShardFileHeader& header, const BlockImage& block,
                        size_t index) {
  const auto error = [index](const auto&... text) {
    return absl::InvalidArgumentError(
        absl::StrCat("block ", index, " of a checkpoint: ", text...));
  };
  if (block.state.size() != header.state_names.size()) {
    return error("wants ", header.state_names.size(), " states, got ",
                 block.state.size());
  }
  int64_t elements = 0;
  for (const Slice& slice : block.slices) {
    if (slice.parameter < 0 ||
        slice.parameter >= static_cast<int>(header.parameters.size())) {
      return error("wants a parameter below ", header.parameters.size(),
                   ", got ", slice.parameter);
    }
    const int64_t size = header.parameters[slice.parameter].size();
    if (slice.begin < 0 || slice.begin >= slice.end || slice.end > size) {
      return error("wants elements of 0 to ", size, ", got ", slice.begin,
                   " to ", slice.end);
    }
    if (slice.offset != elements) {
      return error("wants its slices one behind the other");
    }
    elements += slice.size();
  }
  if (elements != block.num_elements) {
    return error("wants ", elements, " elements, got ", block.num_elements);
  }
  return absl::OkStatus();
}

absl::Status CheckShard(const ShardFileHeader& header,
                        absl::Span<const BlockImage> blocks) {
  TRIBUTARY_RETURN_IF_ERROR(
      CheckTensorNames(header.parameters, header.state_names));
  const int most = MaxFiles(header.kind);
  if (header.num_shards < 1 || header.num_shards > most || header.shard < 0 ||
      header.shard >= header.num_shards) {
    return absl::InvalidArgumentError(
        absl::StrCat("a checkpoint wants a ", NounOf(header.kind), " of 1 to ",
                     most, ", got ", NounOf(header.kind), " ", header.shard,
                     " of ", header.num_shards));
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    TRIBUTARY_RETURN_IF_ERROR(CheckBlock(header, blocks[i], i));
  }
  return absl::OkStatus();
}

v1::CheckpointShard IndexOf(const ShardFileHeader& header,
                            absl::Span<const BlockImage> blocks) {
  v1::CheckpointShard index;
  index.set_job_id(header.job_id);
  index.set_lineage(header.lineage);
  index.set_plan_epoch(header.plan_epoch);
  index.set_step(header.step);
  index.set_skipped_steps(header.skipped_steps);
  index.set_shard(header.shard);
  index.set_num_shards(header.num_shards);
  ToProto(header.parameters, index.mutable_parameters());
  for (const std::string& name : header.state_names) {
    index.add_state_names(name);
  }
  for (const BlockImage& block : blocks) {
    v1::CheckpointBlock* proto = index.add_blocks();
    for (const Slice& slice : block.slices) {
      v1::CheckpointSlice* out = proto->add_slices();
      out->set_parameter(slice.parameter);
      out->set_begin(slice.begin);
      out->set_end(slice.end);
    }
  }
  return index;
}

}  // namespace

ShardFileSeries SeriesOf(const v1::Plan& plan, const PartitionPlan& partition,
                         int shard, std::vector<std::string> state_names) {
  ShardFileSeries series = {.job_id = plan.job_id(),
                            .lineage = plan.lineage(),
                            .plan_epoch = plan.epoch(),
                            .num_shards = 0,
                            .parameters = partition.parameters(),
                            .state_names = std::move(state_names)};
  for (int other = 0; other < partition.num_shards(); ++other) {
    if (other == shard) series.shard = series.num_shards;
    if (!partition.blocks(other).empty()) ++series.num_shards;
  }
  return series;
}

std::string WriterTag(uint64_t job_id, uint64_t plan_epoch) {
  if (plan_epoch == 0) return "";
  return absl::StrFormat("-%016x-e%04d", job_id, plan_epoch);
}

std::string ShardFileName(int shard, int num_shards, uint64_t job_id,
                          uint64_t plan_epoch) {
  return FileNameOf({.job_id = job_id,
                     .plan_epoch = plan_epoch,
                     .shard = shard,
                     .num_shards = num_shards});
}

std::string FileNameOf(const ShardFileSeries& series) {
  return absl::StrFormat("%s-%03d-of-%03d%s.ckpt", NounOf(series.kind),
                         series.shard, series.num_shards,
                         WriterTag(series.job_id, series.plan_epoch));
}

int MaxFiles(PagedFileKind kind) {
  return kind == PagedFileKind::kResidual ? kMaxRanks
                                          : PartitionPlan::kMaxShards;
}

absl::StatusOr<v1::CheckpointFile> WriteShardFile(
    const std::string& folder, const ShardFileHeader& header,
    absl::Span<const BlockImage> blocks,
    const std::function<bool()>& cancelled) {
  TRIBUTARY_RETURN_IF_ERROR(CheckShard(header, blocks));
  const int64_t num_tensors =
      1 + static_cast<int64_t>(header.state_names.size());
  int64_t elements = 0;
  for (const BlockImage& block : blocks) elements += block.num_elements;

  v1::CheckpointFile result;
  result.set_name(FileNameOf(header));
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::unique_ptr<PagedFileWriter> file,
      PagedFileWriter::Create(
          absl::StrCat(folder, "/", result.name()), header.kind,
          IndexOf(header, blocks).SerializeAsString(),
          elements * num_tensors * int64_t{sizeof(float)}, header.digests));
  const auto check = [&cancelled, &result]() -> absl::Status {
    if (!cancelled || !cancelled()) return absl::OkStatus();
    return absl::CancelledError(
        absl::StrCat(result.name(), " is not wanted any more"));
  };
  for (const BlockImage& block : blocks) {
    TRIBUTARY_RETURN_IF_ERROR(check());
    const size_t bytes =
        static_cast<size_t>(block.num_elements) * sizeof(float);
    TRIBUTARY_RETURN_IF_ERROR(file->Append(block.weights, bytes));
    TRIBUTARY_FAILPOINT_OR(
        "shard-file-middle",
        return FileError(absl::StrCat(folder, "/", result.name()), "write",
                         EIO));
    for (const float* state : block.state) {
      TRIBUTARY_RETURN_IF_ERROR(file->Append(state, bytes));
    }
  }
  TRIBUTARY_RETURN_IF_ERROR(check());
  TRIBUTARY_FAILPOINT("shard-file-before-rename");
  TRIBUTARY_RETURN_IF_ERROR(file->Commit());
  TRIBUTARY_FAILPOINT("shard-file-after-rename");
  result.set_bytes(static_cast<uint64_t>(file->bytes()));
  result.set_crc32c(file->crc32c());
  result.set_sha256(file->sha256());
  return result;
}

}  // namespace tributary
