// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cli/jobs/job_register.h"
#include "cli/jobs/run_outcome.h"
#include "common/host/process_state.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Why a job does not advance, or is slow.
enum class WhyCause {
  kNone,            // it advances
  kStoppedProcess,  // of a member, by SIGSTOP or a debugger
  kEndedProcess,    // of a member; nothing has taken its place
  kSilentHost,
  kMissingMember,  // a place that no process holds
  kNoProgram,      // the job's program has not said what it trains
  kFullDisk,
  kFailingDisk,  // any other error of the disk
  kSlowLink,
  kSlowWorker,
  kSlowData,
  kSlowServer,
  kDiverges,
  kStoppedCoordinator,
  kSilentCoordinator,  // its process lives
  kNoCoordinator,
  kDone,
  kInterrupted,
  kFailed,
  kUnknown,
};

// The word that programs get: "stopped-process" for kStoppedProcess.
absl::string_view CauseWord(WhyCause cause);

struct WhyAnswer {
  WhyCause cause = WhyCause::kUnknown;
  // One sentence without the job's name and without a full stop, as in
  // "advances: step 812 of 5,000, ...".
  std::string sentence;
  // Further samples of the status could change the answer.
  bool wants_more = false;
};

// The facts about a job whose coordinator answers.
struct WhyFacts {
  // The status, at least once, oldest first.
  std::vector<v1::JobStatusResponse> samples;
  // The members' processes of this host, by role and index.
  std::map<std::pair<v1::Role, uint32_t>, ProcessState> processes;

  const v1::JobStatusResponse& now() const { return samples.back(); }
};

// A pure function.
WhyAnswer ExplainJob(const WhyFacts& facts);

// The facts about a job whose coordinator does not run, or cannot be reached.
struct UnreachableFacts {
  KnownJob known;
  absl::Status why;     // the error of the last call to the coordinator
  bool proved = false;  // that call has shown a certificate or a token
  // As summary.json says; nullopt: the run has none.
  std::optional<RunOutcome> outcome;
};

// A pure function.
WhyAnswer ExplainUnreachable(const UnreachableFacts& facts);

}  // namespace tributary
