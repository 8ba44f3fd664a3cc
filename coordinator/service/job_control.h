// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/telemetry/histogram.h"
#include "coordinator/job/job_status.h"
#include "coordinator/service/job_calls.h"
#include "coordinator/service/job_output.h"
#include "coordinator/service/locked_job.h"

namespace tributary {

// One job of a coordinator, for the process that runs the coordinator. calls()
// is for the service, output() for the writing thread. Every function may be
// called from any thread; only those with a timeout wait.
class JobControl {
 public:
  using Options = JobCore::Options;

  explicit JobControl(Options options);

  JobCalls& calls() { return calls_; }
  JobOutput& output() { return output_; }
  const JobOutput& output() const { return output_; }

  v1::JobStatusResponse Snapshot() const;
  // Seconds that each checkpoint took, measured at its slowest writer.
  HistogramSnapshot CheckpointSeconds() const;
  JobTotals Totals() const;
  // The processes that hold the ranks, by rank; an empty entry: none yet.
  std::vector<v1::RegisterRequest> Workers() const;

  // Ends hold_start. The argument is the directory for checkpoints; empty:
  // none.
  void AllowStart(const std::string& checkpoint_directory);
  // Call it when the process of a member is known to have ended.
  LossVerdict MemberLost(v1::Role role, uint32_t index, int64_t pid,
                         absl::string_view how);
  // Waits until there is news and returns it; after `timeout` the update may be
  // empty. For one caller: each record is returned once.
  JobUpdate WaitForUpdate(absl::Duration timeout);
  // The last update of a job that is over, once its members have ended. For a
  // failed job it also has the steps that not all workers have reported.
  JobUpdate LastUpdate();
  // All workers stop at one common step; then the weights are read and the job
  // is done. Returns at once.
  void RequestStop();
  // Ends the job for all members with this message; no effect when it is over.
  void Fail(absl::string_view why, v1::Cause cause = v1::CAUSE_UNSPECIFIED);
  // Sets what the job waits for besides members; an empty text: nothing.
  void SetWaits(const v1::Wait& what);
  // Waits until every living member has learned from a heartbeat that the job
  // is over. False after `timeout`.
  bool WaitUntilEveryoneKnowsEnd(absl::Duration timeout);

  // For the lease thread: waits for `timeout`, or until Close is called, and
  // then checks the leases.
  void Tick(absl::Duration timeout);
  void Close();  // ends every wait
  bool closed() const;
  bool deposed() const;  // another coordinator of this job has a higher term
  bool saved() const;    // every change is on disk
  uint64_t term() const { return term_; }

 private:
  const uint64_t term_;
  LockedJob job_;
  JobCalls calls_;
  JobOutput output_;
};

}  // namespace tributary
