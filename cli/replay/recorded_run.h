// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/parameter_spec.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Weights that a run has left behind after a step.
struct RecordedState {
  int64_t step = 0;
  std::string path;            // a checkpoint's folder, or a safetensors file
  bool is_checkpoint = false;  // with the optimizer's state
  bool is_start = false;       // the run was resumed from it
};

// The record that a run directory has of each step of its run.
struct RecordedRun {
  std::string folder;  // as the user named it
  v1::JobSpec job;     // resolved
  // The loss of each step in metrics.jsonl, by step from 1; NaN for null. Steps
  // with a lost report of a rank are left out, because their loss lacks its
  // samples.
  std::map<int64_t, double> losses;
  // The first and the last step with a line, even if losses lacks it; 0: no
  // step.
  int64_t first_step = 0;
  int64_t last_step = 0;
  // environment.json; an empty object if the run has no such file.
  nlohmann::json environment = nlohmann::json::object();
  ParameterSpecs parameters;   // of model.json; empty: no such file
  int64_t start_step = 0;      // after which a resumed run began
  int64_t final_step = 0;      // of summary.json, with the final weights
  std::string weights_sha256;  // of summary.json; empty: no final weights
  // Ordered by step: complete checkpoints, the checkpoint that the run was
  // resumed from (if it still exists), and the final weights.
  std::vector<RecordedState> states;

  // The state after this step, preferably a checkpoint; null: none.
  const RecordedState* StateAfter(int64_t step) const;
  // The file of the final weights; null: there is none.
  const RecordedState* FinalWeights() const;
  // The newest checkpoint of at most this step; null: none.
  const RecordedState* CheckpointUpTo(int64_t step) const;
  // Whether all ranks have computed on the CPU. False if it is unknown.
  bool OnCpu() const;
};

// NotFound: it is not a run directory. InvalidArgument: a file in it is
// damaged; the message names the file.
absl::StatusOr<RecordedRun> ReadRecordedRun(const std::string& folder);

// "the checkpoint of step 50", "the weights after step 100".
std::string StateText(const RecordedState& state);

// Whether two losses have the same bits; all NaN are one value.
bool SameLoss(double a, double b);

// The shortest text that reads back to the same loss; "nan".
std::string LossText(double loss);

}  // namespace tributary
