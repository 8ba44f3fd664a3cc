// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "cli/terminal/console.h"
#include "common/checkpoint/checkpoint_claim.h"
#include "coordinator/core/job_plan.h"
#include "coordinator/job/job_status.h"

namespace tributary {

// A job that keeps the best checkpoint can only compare with one that exists.
// If the checkpoint of the best evaluation so far is gone, takes the weights
// that the run starts with as the best, if they were evaluated, or else none.
// Returns a message about it; empty: nothing has changed. If the job has
// another model, marks the earlier evaluations as others, and the coordinator
// forgets the best (EvaluationDecisions::SetBasis).
std::string ForgetLostBest(const v1::JobSpec& job, JobStart* start);

// The checkpoint directory of a run, as the process that runs the coordinator
// uses it.
class RunCheckpoints {
 public:
  // `job`, `start` and `console` must outlive this object. `key`: of keyed
  // checksums; empty: there are none.
  RunCheckpoints(const v1::JobSpec* job, const JobStart* start, std::string key,
                 Console* console)
      : job_(*job), start_(*start), key_(std::move(key)), console_(*console) {}

  // Absolute; empty: the job writes no checkpoints. `run`: the run directory.
  std::string Directory(const std::string& run) const;
  // Locks this directory and checks that it holds no other run's checkpoints.
  // `begins`: the run has no checkpoints yet.
  absl::Status Claim(const std::string& directory, uint64_t lineage,
                     bool begins);
  // FailedPrecondition, with advice: the directory of a resumed run holds an
  // intact checkpoint that Resume would remove, because its step is after the
  // run's start, or another run's checkpoint of a step that Resume copies
  // there. `best`: as for Resume.
  absl::Status CheckNothingElse(const std::string& directory,
                                int64_t best) const;
  bool claimed() const { return claim_ != nullptr; }
  void Release() { claim_.reset(); }
  // Prepares the directory of a resumed run: takes over the checkpoint that the
  // run starts from and the best one, and removes checkpoints of steps that the
  // run trains again. `best`: the step of the best evaluation so far; 0: none.
  absl::Status Resume(const std::string& directory, uint64_t lineage,
                      int64_t best);
  // Writes best.safetensors into the run directory, if the job has
  // evaluation.keep_best.
  struct SavedBest {
    std::string note;            // says which was the best; empty: none was
    std::string weights_sha256;  // of the file; empty: there is none
  };
  SavedBest SaveBest(const JobTotals::Best& best, const std::string& run) const;

 private:
  // The checkpoint that the run starts from, or one of an earlier step.
  std::filesystem::path Source(int64_t step) const;
  // Copies the checkpoint of this step into the directory.
  absl::Status Bring(int64_t step, const std::string& directory);

  const v1::JobSpec& job_;
  const JobStart& start_;
  const std::string key_;
  Console& console_;
  std::unique_ptr<CheckpointClaim> claim_;  // held as long as the coordinator
};

}  // namespace tributary
