// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace tributary {

// How a run has ended, as its summary.json says.
struct RunOutcome {
  std::string name;
  std::string status;   // "done", "interrupted" or "failed"
  std::string message;  // why it failed
  std::string cause;    // as in CauseName; empty: see message
  int64_t steps = 0;
  int64_t total_steps = 0;      // 0: not known
  int64_t skipped_steps = 0;    // changed nothing
  int64_t checkpoint_step = 0;  // of the newest checkpoint; 0: none
  int64_t best_step = 0;        // of the best evaluation; 0: none
  std::string resume_command;   // empty: there is nothing to continue from

  // "stopped after step 812 of 5,000", "failed after step 3 of 40: REASON",
  // "done after step 40 of 40 (9 of 40 steps changed nothing, because ...)".
  std::string Text() const;
};

// Reads summary.json. resume_command names the present directory of the run,
// which may have been moved or copied; it is empty if no complete checkpoint is
// left there. NotFound: the run has not ended, or was killed before it could
// write the file. DataLoss: the file is damaged. InvalidArgument: it cannot be
// read.
absl::StatusOr<RunOutcome> ReadRunOutcome(const std::string& run_directory);

// "9 of 5,000 steps changed nothing, because a gradient was not finite".
std::string SkippedText(int64_t skipped, int64_t steps);

// The form of paths in summary.json.
std::string AbsolutePath(const std::string& path);

// "5,000".
std::string WithThousands(int64_t number);

}  // namespace tributary
