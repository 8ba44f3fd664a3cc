// SPDX-License-Identifier: Apache-2.0
#include "server/service/server_driver.h"

#include <string>

#include "common/member/report_checkpoint.h"
#include "server/service/serving_life.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

// How often a server reports to the coordinator which ranks it waits for.
constexpr absl::Duration kReportInterval = absl::Milliseconds(500);

// Cuts a checkpoint of this step, for which the coordinator asks. A coordinator
// that takes the job over asks again. After another server is lost at the job's
// end, the coordinator names an earlier step, which is cut already.
void Cut(const WantedCut& wanted, Member& member, DrivenServer& server,
         int64_t* last_cut) {
  if (wanted.step <= *last_cut) return;
  const absl::Status cut = server.CutAll(wanted.step, wanted.best);
  if (absl::IsUnavailable(cut)) return;  // tried again
  *last_cut = wanted.step;
  if (!cut.ok()) {
    spdlog::warn("there is no checkpoint of step {}: {}", wanted.step,
                 std::string(cut.message()));
  }
  member.ReportCut(wanted.step);
}

// Serves the plan until ServingLife says to do something else.
void ServePlan(Member& member, DrivenServer& server, ServingLife* life) {
  const v1::Plan& plan = life->plan();
  member.StartAt(plan.epoch(), plan.start_step());
  spdlog::info("serving shard {} of {}, plan epoch {}", member.index(),
               plan.servers_size(), plan.epoch());
  WantedCut wanted;
  int64_t last_cut = 0;
  while (true) {
    const absl::Status news =
        member.WaitForPlanAfter(plan.epoch(), kReportInterval, wanted.step);
    life->OnNews(news, server.Fatal());
    if (life->next() != ServingLife::Next::kServe) break;
    wanted = member.wanted_cut();
    Cut(wanted, member, server, &last_cut);
    server.ShowWait(plan);
  }
  server.Served();
}

absl::Status Live(Member& member, DrivenServer& server) {
  ServingLife life;
  while (true) {
    switch (life.next()) {
      case ServingLife::Next::kGetPlan:
        life.OnPlan(member.GetPlan(life.wanted_epoch()));
        break;
      case ServingLife::Next::kStart:
        life.OnStarted(server.Start(life.plan()));
        break;
      case ServingLife::Next::kServe:
        ServePlan(member, server, &life);
        break;
      case ServingLife::Next::kReportUnreadable:
        life.OnNews(ReportUnreadable(life.status(), life.plan(), &member));
        break;
      case ServingLife::Next::kEnd:
        return life.status();
    }
  }
}

}  // namespace

absl::Status ServeUntilEnd(Member& member, DrivenServer& server) {
  const absl::Status status = Live(member, server);
  if (!status.ok() && member.end().ok()) member.Fail(status);
  return status;
}

}  // namespace tributary
