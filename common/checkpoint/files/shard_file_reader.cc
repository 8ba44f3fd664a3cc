// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/checkpoint/files/shard_file.h"
#include "common/plan/plan_codec.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// Appends the ranges of one block's slices; returns the offset of the next
// block.
absl::StatusOr<int64_t> AppendRanges(const v1::CheckpointBlock& block,
                                     const ShardFileHeader& header,
                                     int64_t offset, int64_t data_bytes,
                                     std::vector<ShardFile::Range>* ranges) {
  const int64_t num_tensors =
      1 + static_cast<int64_t>(header.state_names.size());
  const int64_t element_bytes = num_tensors * int64_t{sizeof(float)};
  const int64_t limit = (data_bytes - offset) / element_bytes;
  const size_t first = ranges->size();
  int64_t elements = 0;
  for (const v1::CheckpointSlice& slice : block.slices()) {
    if (slice.parameter() < 0 ||
        slice.parameter() >= static_cast<int>(header.parameters.size())) {
      return absl::DataLossError(absl::StrCat("a slice of parameter ",
                                              slice.parameter(), " of ",
                                              header.parameters.size()));
    }
    const ParameterSpec& spec = header.parameters[slice.parameter()];
    if (slice.begin() < 0 || slice.begin() >= slice.end() ||
        slice.end() > spec.size()) {
      return absl::DataLossError(absl::StrCat(
          "elements ", slice.begin(), " to ", slice.end(), " of parameter ",
          Quoted(spec.name), ", which has ", spec.size()));
    }
    const int64_t size = slice.end() - slice.begin();
    if (size > limit - elements) {
      return absl::DataLossError(absl::StrCat("blocks that want more than the ",
                                              data_bytes, " bytes of data"));
    }
    ranges->push_back({slice.parameter(), slice.begin(), slice.end(),
                       offset + elements * int64_t{sizeof(float)}, 0});
    elements += size;
  }
  for (size_t i = first; i < ranges->size(); ++i) {
    (*ranges)[i].stride = elements * int64_t{sizeof(float)};
  }
  return offset + elements * element_bytes;
}

}  // namespace

absl::Status CheckTensorNames(const ParameterSpecs& parameters,
                              absl::Span<const std::string> state_names) {
  TRIBUTARY_RETURN_IF_ERROR(PartitionPlan::CheckParameters(parameters));
  if (state_names.size() > kMaxStates) {
    return absl::InvalidArgumentError(absl::StrCat("wants at most ", kMaxStates,
                                                   " optimizer states, got ",
                                                   state_names.size()));
  }
  std::set<std::string> names;
  for (const std::string& name : state_names) {
    if (name.empty() || !names.insert(name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("wants optimizer states with names of their own, got ",
                       Quoted(name), name.empty() ? "" : " twice"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ShardFile>> ShardFile::Open(
    const std::string& path, Comparing comparing, PagedFileKind kind) {
  return Create(PagedFile::Open(path, kind, comparing), kind);
}

absl::StatusOr<std::unique_ptr<ShardFile>> ShardFile::Parse(
    const std::string& name, absl::string_view bytes) {
  constexpr PagedFileKind kKind = PagedFileKind::kShard;
  return Create(PagedFile::Parse(name, bytes, kKind), kKind);
}

absl::StatusOr<std::unique_ptr<ShardFile>> ShardFile::Create(
    absl::StatusOr<PagedFile> file, PagedFileKind kind) {
  TRIBUTARY_RETURN_IF_ERROR(file.status());
  std::unique_ptr<ShardFile> shard(new ShardFile(*std::move(file)));
  shard->header_.kind = kind;
  v1::CheckpointShard index;
  if (!index.ParseFromString(shard->file_.message())) {
    return shard->file_.MessageError("wants an index, got something else");
  }
  const absl::Status status = shard->ReadIndex(index);
  if (!status.ok()) {
    return shard->file_.MessageError(
        absl::StrCat("the index is impossible: ", status.message()));
  }
  return shard;
}

absl::Status ShardFile::ReadIndex(const v1::CheckpointShard& index) {
  header_.job_id = index.job_id();
  header_.lineage = index.lineage();
  header_.plan_epoch = index.plan_epoch();
  header_.step = index.step();
  header_.skipped_steps = index.skipped_steps();
  header_.shard = index.shard();
  header_.num_shards = index.num_shards();
  header_.parameters = FromProto(index.parameters());
  header_.state_names = {index.state_names().begin(),
                         index.state_names().end()};
  TRIBUTARY_RETURN_IF_ERROR(
      CheckTensorNames(header_.parameters, header_.state_names));
  if (header_.skipped_steps < 0 || header_.skipped_steps > header_.step) {
    return absl::DataLossError(absl::StrCat(
        header_.skipped_steps, " skipped steps of ", header_.step));
  }
  int64_t offset = 0;
  for (const v1::CheckpointBlock& block : index.blocks()) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        offset,
        AppendRanges(block, header_, offset, file_.data_bytes(), &ranges_));
  }
  if (offset != file_.data_bytes()) {
    return absl::DataLossError(absl::StrCat(
        "blocks of ", offset, " bytes, the file holds ", file_.data_bytes()));
  }
  return absl::OkStatus();
}

absl::Status ShardFile::Read(const Range& range, int tensor, int64_t first,
                             absl::Span<float> values,
                             PageBuffer* buffer) const {
  const int64_t end = first + static_cast<int64_t>(values.size());
  if (tensor < 0 || tensor > static_cast<int>(header_.state_names.size()) ||
      first < range.begin || end > range.end) {
    return absl::OutOfRangeError(absl::StrCat(
        file_.path(), ": wants elements ", first, " to ", end, " of tensor ",
        tensor, ", has ", range.begin, " to ", range.end, " of ",
        1 + header_.state_names.size(), " tensors"));
  }
  const int64_t offset = range.offset + tensor * range.stride +
                         (first - range.begin) * int64_t{sizeof(float)};
  return file_.ReadData(offset, values.data(), values.size() * sizeof(float),
                        buffer);
}

}  // namespace tributary
