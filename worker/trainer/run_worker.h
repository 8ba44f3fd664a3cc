#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tributary/v1/job.pb.h"
#include "worker/collective/local_meshes.h"
#include "worker/data/shared_data.h"
#include "worker/trainer/trainer.h"

namespace tributary {

// What a worker process is told on its command line.
struct WorkerOptions {
  std::string coordinator;  // host:port
  // Overrides the job's device where it is not AUTO.
  v1::Device device = v1::DEVICE_AUTO;
  std::optional<uint32_t> index;  // this rank or none; else any free one
  // Which of the machine's CUDA devices, modulo their number; none: the rank
  // of the job. Threads of one process always take theirs.
  std::optional<uint32_t> local_rank;
  std::string metrics_listen;  // host:port for HTTP; empty: none
  absl::Duration join_timeout = absl::Seconds(60);
  bool adopted = false;  // beside another rank of this process
  // Of this process, if other ranks run in it; both outlive the worker.
  LocalMeshes* local_meshes = nullptr;
  SharedData* shared_data = nullptr;
  // For tests of timing, see ParameterClient.
  std::function<int64_t()> delay_micros;
  // For tests of stragglers: every step's computation takes so many times as
  // long.
  double slow_down = 1;
};

// A worker's life: joins the job, trains, reports, shuts down. The status is the
// process's last sentence.
absl::Status RunWorker(const WorkerOptions& options);

}  // namespace tributary
