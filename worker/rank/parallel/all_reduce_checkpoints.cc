// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/parallel/all_reduce_checkpoints.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/restore.h"
#include "common/status/status_macros.h"
#include "worker/rank/collective/device_fault.h"

namespace tributary {

AllReduceCheckpoints::AllReduceCheckpoints(const AllReduceOptions& options,
                                           LocalOptimizer* optimizer,
                                           RankSums* sums)
    : options_(options), optimizer_(optimizer), sums_(sums) {
  const AllReduceOptions::Checkpoints& wanted = options_.checkpoints;
  const int rank = options_.group->rank();
  if (wanted.directory.empty() || (rank != 0 && !options_.cut())) return;
  Checkpointer::Options made;
  made.directory = wanted.directory;
  made.series.job_id = wanted.job_id;
  made.series.lineage = wanted.lineage;
  made.series.plan_epoch = wanted.plan_epoch;
  made.series.digests = wanted.digests;
  // The rank in the job, or in replica 0 if only that replica writes.
  made.series.shard = options_.part.mesh.RankOf(options_.part.place);
  made.series.num_shards = options_.cut() ? options_.part.mesh.size()
                                          : options_.part.mesh.model_size();
  made.series.parameters = options_.part.planned;
  made.series.state_names = optimizer_->state_names();
  // A rank without any block to write writes an empty file.
  made.num_blocks = std::max<size_t>(
      1, absl::c_count_if(optimizer_->ranges(), [this](const auto& range) {
        return options_.part.Writes(range.parameter);
      }));
  made.on_written = [this](const Checkpointer::Written& written) {
    options_.checkpoints.on_written(written, optimizer_->state_names());
  };
  checkpointer_ = std::make_unique<Checkpointer>(std::move(made));
}

absl::Status AllReduceCheckpoints::Restore() { return Unreadable(Read()); }

absl::Status AllReduceCheckpoints::Read() {
  const ParameterSpecs& parameters = options_.model->parameters();
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::unique_ptr<PlannedCheckpoint> checkpoint,
      PlannedCheckpoint::Create(options_.checkpoints.restore,
                                options_.part.planned,
                                optimizer_->state_names()));
  for (size_t p = 0; p < parameters.size(); ++p) {
    const int parameter = static_cast<int>(p);
    std::vector<float> host(parameters[p].size());
    TRIBUTARY_RETURN_IF_ERROR(checkpoint->ReadRange(
        0, options_.part.place_in_plan[p], 0, absl::MakeSpan(host)));
    options_.device.ops->CopyIn(options_.model->weight(parameter), host.data(),
                                host.size() * sizeof(float));
  }
  TRIBUTARY_RETURN_IF_ERROR(
      optimizer_->Restore(*checkpoint, options_.part.place_in_plan));
  TRIBUTARY_RETURN_IF_ERROR(options_.checkpoints.restore->CompareChecksums());
  return SynchronizeDevice(*options_.device.ops);
}

int AllReduceCheckpoints::JobRank(int replica) const {
  DeviceMesh::Place place = options_.part.place;
  place.data = replica;
  return options_.part.mesh.RankOf(place);
}

absl::Status AllReduceCheckpoints::CompareReplicas(int64_t steps,
                                                   int64_t num_elements) {
  const int size = options_.group->size(), rank = options_.group->rank();
  // Hashes of the weights and, if all ranks hold the same state, of the state.
  std::vector<uint32_t> hashes(2 * size);
  if (num_elements > 0) {
    hashes[2 * rank] = ChecksumOf(*options_.device.ops,
                                  options_.model->weight(0), num_elements);
  }
  if (options_.replicated()) hashes[2 * rank + 1] = optimizer_->StateChecksum();
  TRIBUTARY_RETURN_IF_ERROR(DeviceFault(*options_.device.ops));
  std::vector<int64_t> bounds;
  for (int r = 0; r <= size; ++r) bounds.push_back(2 * r);
  static_assert(sizeof(float) == sizeof(uint32_t));
  TRIBUTARY_RETURN_IF_ERROR(
      sums_->AllGather(reinterpret_cast<float*>(hashes.data()), bounds));
  for (int r = 1; r < size; ++r) {
    for (int i : {0, 1}) {
      if (hashes[2 * r + i] == hashes[i]) continue;
      return absl::DataLossError(absl::StrCat(
          "after step ", steps, " the ", i == 0 ? "weights" : "optimizer state",
          " of rank ", JobRank(r), " have checksum ",
          absl::Hex(hashes[2 * r + i]), ", those of rank ", JobRank(0), " ",
          absl::Hex(hashes[i])));
    }
  }
  return absl::OkStatus();
}

absl::Status AllReduceCheckpoints::Write(int64_t steps, int64_t num_elements,
                                         bool best) {
  if (std::exchange(written_, steps) != steps) {
    TRIBUTARY_RETURN_IF_ERROR(CompareReplicas(steps, num_elements));
    TRIBUTARY_RETURN_IF_ERROR(Cut(steps));
  }
  if (best && checkpointer_ != nullptr) checkpointer_->SetBest(steps);
  return absl::OkStatus();
}

absl::Status AllReduceCheckpoints::Cut(int64_t steps) {
  if (checkpointer_ == nullptr) return absl::OkStatus();
  const auto take = [this](const BlockCut& cut) { checkpointer_->Take(cut); };
  bool any = false;
  for (size_t r = 0; r < optimizer_->ranges().size(); ++r) {
    const int parameter = optimizer_->ranges()[r].parameter;
    if (!options_.part.Writes(parameter)) continue;
    any = true;
    TRIBUTARY_RETURN_IF_ERROR(optimizer_->Cut(
        steps, r, options_.part.place_in_plan[parameter], take));
  }
  if (!any) {
    const Block none;
    take(
        {.steps = steps,
         .skipped_steps = optimizer_->skipped_steps(),
         .block = &none,
         .weights = SharedBuffer(0),
         .state = std::vector<const float*>(optimizer_->state_names().size())});
  }
  return absl::OkStatus();
}

}  // namespace tributary
