// SPDX-License-Identifier: Apache-2.0
#include "worker/train/trainer/run_worker.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/failpoint.h"
#include "common/job/job_file.h"
#include "common/member/leave_on_signal.h"
#include "common/member/member.h"
#include "common/status/status_macros.h"
#include "common/telemetry/exporter.h"
#include "common/telemetry/log.h"
#include "spdlog/spdlog.h"
#include "worker/rank/session/adoptions.h"
#include "worker/rank/session/canceller.h"
#include "worker/rank/session/worker_metrics.h"
#include "worker/train/trainer/rank_work.h"

namespace tributary {

absl::Status RunWorker(const WorkerOptions& given) {
  LocalMeshes local_meshes;
  SharedData shared_data;
  WorkerOptions options = given;
  if (options.in_process.local_meshes == nullptr)
    options.in_process.local_meshes = &local_meshes;
  if (options.in_process.shared_data == nullptr)
    options.in_process.shared_data = &shared_data;
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<Exporter> exporter,
                             Exporter::Start({.listen = options.metrics_listen,
                                              .role = "worker",
                                              .access = options.pages}));
  Exporter::Handle joining = exporter->AddHealthCheck([&options] {
    return Health{false, absl::StrCat("waits for a place at coordinator ",
                                      options.coordinator)};
  });
  if (!options.in_process.adopted) TRIBUTARY_FAILPOINT("worker-started");
  Canceller canceller;
  Adoptions adoptions([&options](uint32_t rank) {
    WorkerOptions adopted = options;
    adopted.index = rank;
    adopted.in_process.adopted = true;
    adopted.metrics_listen.clear();
    adopted.pages.health_listen.clear();
    return RunWorker(adopted);
  });
  WorkerMetrics metrics;
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<Member> member,
      Member::Join(
          {.coordinator = options.coordinator,
           .role = v1::ROLE_WORKER,
           .metrics_address = exporter->address(),
           .wanted_index = options.index,
           .timeouts = {.join = options.join_timeout},
           .callbacks = {
               .on_end =
                   [&](const absl::Status& status) {
                     canceller.Cancel(
                         status.ok() ? absl::CancelledError("the job is done")
                                     : status);
                   },
               .on_new_plan =
                   [&](uint64_t epoch) { canceller.CancelBefore(epoch); },
               .on_adopt =
                   [&](const std::vector<uint32_t>& ranks) {
                     adoptions.Adopt(ranks);
                   }},
           .proof = options.access.Proof(),
           .checkpoint_roots = options.roots.checkpoints}));
  TRIBUTARY_RETURN_IF_ERROR(CheckHasModel(
      member->job(), absl::StrCat("coordinator ", options.coordinator)));
  if (!options.in_process.adopted) SetLogIndex(member->index());
  joining = Exporter::Handle();
  const Exporter::Handle health = exporter->AddHealthCheck([&member] {
    return HealthOf(member->Contact(), member->display().waiting_for());
  });
  const Exporter::Handle source =
      exporter->AddSource([&](MetricsWriter* writer) {
        metrics.Write(member->index(), member->job().cluster().servers(),
                      !member->display().waiting_for().empty(), writer);
      });
  const uint32_t rank = member->index();
  spdlog::info("rank {} of {}", rank, member->job().cluster().workers());
  const LeaveOnSignal leave(member.get(), absl::StrCat("rank ", rank));
  RankWork work(options, {*member, canceller, adoptions, metrics});
  const absl::Status status = work.Run();
  adoptions.Join();
  return status;
}

}  // namespace tributary
