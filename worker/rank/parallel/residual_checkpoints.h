// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/checkpoint/checkpointer.h"
#include "common/checkpoint/files/residual_file.h"

namespace tributary {

// Reads and writes a rank's residual: what the encodings of its gradients have
// left out so far, an array for each parameter of the plan. A null pointer
// stands for a parameter without a residual on this rank.
class ResidualCheckpoints {
 public:
  struct Options {
    int64_t start_step = 0;   // of the plan
    int64_t every_steps = 0;  // 0: no file is written before the end
    // True when a file is also written after the last step, although it is not
    // due (LeavesCheckpointAtEnd); null: never.
    std::function<bool(int64_t step)> at_end;
    std::string directory;   // for the job's checkpoints
    ShardFileSeries series;  // ResidualSeriesOf
    std::function<void(const Checkpointer::Written&)> on_written;
    // Reads the residual to start with, as ResidualFile::Read; null: zeros.
    std::function<absl::Status(absl::Span<float* const>)> restore;
    // Tests replace the disk.
    std::function<decltype(WriteCheckpointFile)> write = WriteCheckpointFile;
  };

  explicit ResidualCheckpoints(Options options)
      : options_(std::move(options)) {}

  // Call this once, before the first step, when the arrays are zero.
  // `finished`: the steps that this rank has finished. Internal: another
  // process of this rank has finished steps of this plan, and their residual is
  // lost. Unreadable (restore.h) marks errors that an older checkpoint may not
  // have.
  absl::Status Restore(int64_t finished, absl::Span<float* const> residuals);
  // Call this after every step. Copies the arrays if a checkpoint is due after
  // `steps` steps; a thread writes them while training continues.
  void WriteIfDue(int64_t steps, absl::Span<float* const> residuals);
  // Call this after the job's last step.
  void WriteAtEnd(int64_t steps, absl::Span<float* const> residuals);
  // Writes a checkpoint of this step. Needs Options::directory.
  void Write(int64_t steps, absl::Span<float* const> residuals);
  // As Checkpointer::SetBest, after Write of this step.
  void SetBest(int64_t steps) { checkpointer_->SetBest(steps); }

 private:
  void OpenCheckpointer(absl::Span<float* const> residuals);

  const Options options_;
  std::unique_ptr<Checkpointer> checkpointer_;  // since the first checkpoint
  int64_t written_ = 0;                         // step of the last checkpoint
};

}  // namespace tributary
