// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/telemetry/http_listener.h"
#include "common/wire/identity/access.h"
#include "tributary/v1/job.pb.h"
#include "worker/rank/collective/local_meshes.h"
#include "worker/train/data/shared_data.h"

namespace tributary {

// A worker's options, mostly from its command line.
struct WorkerOptions {
  std::string coordinator;  // host:port
  // Overrides the job's device unless it is AUTO.
  v1::Device device = v1::DEVICE_AUTO;
  std::optional<uint32_t> index;  // rank to take; unset: any free one
  // Selects the CUDA device, modulo the number of the machine's devices; unset:
  // the rank of the job. Ranks that are threads of one process always use their
  // rank.
  std::optional<uint32_t> local_rank;
  std::string metrics_listen;  // host:port for HTTP; empty: no listener
  absl::Duration join_timeout = absl::Minutes(10);
  Access access;
  PageAccess pages;
  // Folders below which the job's data and checkpoints must lie; empty:
  // anywhere.
  struct Roots {
    std::vector<std::string> data, checkpoints;
  } roots;
  // For a rank that runs beside others in this process.
  struct InProcess {
    bool adopted = false;                 // runs beside another rank
    LocalMeshes* local_meshes = nullptr;  // both outlive the worker
    SharedData* shared_data = nullptr;
  } in_process;
  struct ForTests {
    // Delays messages, see ParameterClient.
    std::function<int64_t()> delay_micros;
    // Makes a straggler: every step's computation takes so many times as long.
    double slow_down = 1;
  } for_tests;
  // Steps in which each rank writes down what it computes (step_probe.h).
  struct Probe {
    std::string folder;      // empty: no probe
    int64_t first_step = 0;  // from 1
    int64_t last_step = 0;
  } probe;
};

// Runs a worker: joins the job, trains, reports, shuts down. The status is the
// final result of the process.
absl::Status RunWorker(const WorkerOptions& options);

}  // namespace tributary
