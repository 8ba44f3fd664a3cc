// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/host/listen_socket.h"
#include "common/telemetry/metrics_writer.h"
#include "common/wire/identity/call_guard.h"
#include "common/wire/identity/caller_proof.h"
#include "common/wire/port/peer_port.h"
#include "common/wire/side/side_thread.h"
#include "coordinator/core/job_plan.h"
#include "coordinator/job/final_weights.h"
#include "coordinator/service/job_control.h"
#include "coordinator/service/job_rounds.h"

namespace tributary {

// Serves one job: assigns places and leases, publishes the plan, collects
// progress and ends the job for all members. The control plane is small and
// slow, so the synchronous gRPC API is sufficient.
class Coordinator final : private JobFiles {
 public:
  struct Timeouts {
    absl::Duration lease = absl::Seconds(10);
    // How long the job waits for all members to join.
    absl::Duration start = absl::Minutes(10);
    // How long the place of a lost member may stay empty.
    absl::Duration loss = absl::Seconds(120);
  };
  struct Calls {
    // Decides who may call; never null. Start tells the guard about the job.
    std::shared_ptr<CallGuard> guard = CallGuard::Open();
    CallerProof proof;        // of this process, for its calls to servers
    bool reflection = false;  // describes its services to callers who may ask
  };
  // These save everything that outlives this process.
  struct Savers {
    StateSaver::Save state;  // as in JobControl::Options
    EvaluationSaver::Save evaluations;
    // Called on the coordinator's thread when all workers have finished and the
    // final weights have been read; the servers learn only afterwards that the
    // job is done. ResourceExhausted means that the disk is full: the call is
    // repeated until Timeouts::loss. Any other error fails the job.
    std::function<absl::Status(const FinalWeights&)> weights;
  };
  struct Options {
    std::string listen = "127.0.0.1:0";  // host:port; port 0: any free one
    ListeningSockets listening;          // of `listen`; null: there are none
    v1::JobSpec job;                     // resolved
    const Clock* clock = &Clock::Real();
    Timeouts timeouts;
    JobStart start;
    std::string checkpoint_key;  // of keyed checksums; empty: there are none
    bool hold_start = false;     // no plan before AllowStart
    Calls calls;
    Savers savers;
    JobCore::Predecessor predecessor;  // Start alone reads its state
    int64_t started_micros = 0;
  };

  // InvalidArgument: listen address, number of servers or workers, or a lease
  // that is too short. Unavailable: cannot listen on the address.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Start(Options options);

  ~Coordinator() override;

  // host:port, with the host of Options::listen and the actual port.
  const std::string& address() const { return address_; }
  // The lineage of the job's checkpoints.
  uint64_t lineage() const { return lineage_; }

  // The calls for the process that runs the coordinator. Destroying this object
  // ends every call at once, so every living member should know before that the
  // job is over (WaitUntilEveryoneKnowsEnd).
  JobControl& control() { return control_; }
  const JobControl& control() const { return control_; }
  // Writes the job's metrics for an exporter.
  void WriteMetrics(MetricsWriter* writer) const;

 private:
  Coordinator(Options options, JobState::Options state);

  // The proof that the coordinator shows to servers.
  CallerProof Proof() const;

  absl::Status Listen();
  void WatchLeases();  // a thread

  // For JobRounds.
  void RemoveFailed(const std::string& folder) override;
  absl::Status WriteManifest(const PendingManifest& pending) override;
  void RevokeManifest(const PendingManifest& pending) override;
  void ManifestWritten(const PendingManifest& pending, bool saved) override;
  absl::StatusOr<OlderCheckpoint> GoBackBefore(
      const UnreadableCheckpoint& lost) override;
  absl::StatusOr<FinalWeights> ReadWeights(
      const v1::Plan& plan, int64_t step,
      const std::function<bool()>& cancelled) override;
  absl::Status SaveWeights(const FinalWeights& weights) override;
  void LeaveWholeCheckpoints(const std::string& directory) override;

  const Options options_;
  const uint64_t job_id_;
  const std::string job_key_;
  const uint64_t lineage_;
  JobControl control_;
  JobRounds rounds_;
  std::unique_ptr<grpc::Service> service_;
  SideThread side_;
  std::unique_ptr<PeerPort> port_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  std::thread lease_thread_;
  std::thread thread_;
};

}  // namespace tributary
