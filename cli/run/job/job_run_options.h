// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/run/job/run_keys.h"
#include "common/base/clock.h"
#include "common/host/listen_socket.h"
#include "common/telemetry/http_listener.h"
#include "common/telemetry/log.h"
#include "common/wire/identity/access.h"
#include "coordinator/core/job_plan.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Options of a JobRun.
struct JobRunOptions {
  // Where to find the run.
  struct Folder {
    std::string run_dir;        // empty: runs/NAME-DATE-TIME
    std::string registered_in;  // empty: nowhere
    // Continues the job in run_dir if its coordinator ended before the job did.
    bool take_over = false;
  };
  // The coordinator's side of its connections.
  struct Listening {
    std::string address = "127.0.0.1:0";
    ListeningSockets sockets;  // as Coordinator::Options
    Access access;
    bool reflection = false;  // as Coordinator::Options
  };
  struct Metrics {
    std::string listen;  // host:port for HTTP; empty: none
    PageAccess access;
  };
  struct Output {
    LogOptions log;      // its file is in the run directory
    bool quiet = false;  // prints only errors
  };
  struct Keys {
    // The key of the checkpoints' checksums; empty: checksums without a key.
    // The members learn the key, so Listening::access must be encrypted.
    std::string checkpoint;
    // The keys of a run whose processes this process starts; null: it starts
    // none, or without keys. The operator's keys are saved in the run
    // directory.
    std::shared_ptr<const RunKeys> run;
  };
  // The words of the command that continues this run from a checkpoint.
  struct Commands {
    static constexpr char kCheckpoint[] = "CHECKPOINT";  // its placeholder

    std::vector<std::string> resume = {"tributary", "train", "--resume",
                                       kCheckpoint};
    // Used while the only checkpoint is the one that this run began with, which
    // lacks the command's changes of the job. Empty: `resume` is used.
    std::vector<std::string> restart = {};
  };

  v1::JobSpec job;  // resolved
  JobStart start;
  absl::Duration start_timeout = absl::Minutes(10);
  Folder folder;
  Listening listening;
  Metrics metrics;
  Output output;
  Keys keys;
  Commands commands;
  // The data as `tributary-worker --check-data` has described them, for
  // environment.json; empty: unknown.
  std::string data_record;
  // Checks the declared model: an error fails the job. May be empty.
  std::function<absl::Status(const v1::DeclareModelRequest&)> check_model;
  const Clock* clock = &Clock::Real();
};

}  // namespace tributary
