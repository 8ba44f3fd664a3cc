// SPDX-License-Identifier: Apache-2.0
// A program for `tributary run`: one rank that trains a vector of four weights
// with its own gradients, for tests of the command line.
//
//   program_rank [KEY=VALUE...] [steps N] [declare N] [exit CODE] [die-at N]
//                [leave-at N]
//
// KEY=VALUE are fields of the job that the program sets. The program takes N
// steps (default 5) and prints the first ones. `declare`: the total steps that
// it declares. `exit`: rank 1 exits with this code before it joins. `die-at`:
// at this step the first rank 1 in the folder kills itself. `leave-at`: at this
// step rank 1 exits with code 0, without a word to anybody.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/limits.h"
#include "common/member/member.h"
#include "common/member/submit_job.h"
#include "common/status/status_macros.h"
#include "common/wire/identity/access.h"
#include "worker/rank/client/parameter_client.h"

namespace tributary {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);
// Only a few, because a test that waits for another process does not read the
// pipe, which must not become full.
constexpr int64_t kPrintedSteps = 100;

struct Arguments {
  std::vector<std::string> settings;
  int64_t steps = 5, declare = kOpenEnd, exit = -1, die_at = -1, leave_at = -1;
};

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    int64_t* const number = word == "steps"      ? &arguments.steps
                            : word == "declare"  ? &arguments.declare
                            : word == "exit"     ? &arguments.exit
                            : word == "die-at"   ? &arguments.die_at
                            : word == "leave-at" ? &arguments.leave_at
                                                 : nullptr;
    if (number == nullptr) {
      arguments.settings.emplace_back(word);
    } else if (++i == argc || !absl::SimpleAtoi(argv[i], number)) {
      std::abort();
    }
  }
  return arguments;
}

void DieOnce() {
  constexpr char kDied[] = "died";
  if (std::ifstream(kDied).good()) return;
  std::ofstream(kDied) << getpid();
  kill(getpid(), SIGKILL);
}

absl::Status TrainSteps(const Arguments& arguments, const v1::Plan& plan,
                        Member& member) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::unique_ptr<ParameterClient> client,
      ParameterClient::Connect({.plan = plan,
                                .rank = member.index(),
                                .incarnation = member.incarnation(),
                                .proof = member.proof()}));
  std::vector<float> weights(4, 0.0f), gradient(4, 1.0f);
  float* const w = weights.data();
  const float* const g = gradient.data();
  TRIBUTARY_ASSIGN_OR_RETURN(const RankProgress progress,
                             client->ReadProgress());
  if (!progress.initialized && member.index() == 0) {
    const float* const initial = weights.data();
    TRIBUTARY_RETURN_IF_ERROR(client->Initialize({&initial, 1}));
  }
  TRIBUTARY_RETURN_IF_ERROR(
      client->Pull(StartingWeights(ApplyMode::kBulk, progress), {&w, 1}));
  member.StartAt(plan.epoch(), progress.steps, progress.begun);
  for (int64_t step = progress.steps + 1; step <= arguments.steps; ++step) {
    TRIBUTARY_RETURN_IF_ERROR(member.BeginStep(step));
    if (step == arguments.die_at && member.index() == 1) DieOnce();
    if (step == arguments.leave_at && member.index() == 1) _exit(0);
    client->BeginStep(step - 1, 1, {&g, 1}, {&w, 1});
    for (int s = 0; s < client->partition().num_shards(); ++s) {
      for (const Block& block : client->partition().blocks(s)) {
        client->PushPull(block);
      }
    }
    TRIBUTARY_RETURN_IF_ERROR(client->FinishStep());
    if (step <= kPrintedSteps) {
      std::printf("step %ld of the program: weight %g\n", step, weights[0]);
      std::fflush(stdout);
    }
    v1::StepReport report;
    report.set_step(step);
    report.set_epoch(step);
    report.set_loss_sum(1.0 / static_cast<double>(step));
    report.set_samples(1);
    report.set_step_seconds(0.001);
    member.ReportStep(report);
  }
  return member.EndProgram();
}

absl::Status Run(const Arguments& arguments, const std::string& coordinator,
                 const char* rank) {
  const char* const tls = std::getenv("TRIBUTARY_TLS");
  TRIBUTARY_ASSIGN_OR_RETURN(
      const Access access,
      Access::Read({.tls = tls == nullptr ? "" : tls}, PeerRole::kWorker));
  TRIBUTARY_RETURN_IF_ERROR(
      SubmitJob(coordinator, arguments.settings, kPatience, access.Proof()));
  Member::Options options{.coordinator = coordinator,
                          .role = v1::ROLE_WORKER,
                          .proof = access.Proof()};
  if (rank != nullptr) {
    options.wanted_index = static_cast<uint32_t>(std::atoi(rank));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<Member> member,
                             Member::Join(std::move(options)));
  absl::Status status =
      member->DeclareModel({.parameters = {{.name = "w", .shape = {4}}},
                            .total_steps = arguments.declare,
                            .steps_per_epoch = 1,
                            .settings = arguments.settings});
  if (status.ok()) {
    const absl::StatusOr<v1::Plan> plan = member->GetPlan(1);
    status = plan.ok() ? TrainSteps(arguments, *plan, *member) : plan.status();
  }
  if (!status.ok() && !absl::IsCancelled(status)) {
    member->Fail(status);
    return status;
  }
  member->Follow([](MemberState& state, int64_t) {
    state.Finish();
    return state.over();
  });
  return member->end();
}

int Main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  const char* const coordinator = std::getenv("TRIBUTARY_COORDINATOR");
  const char* rank = std::getenv("TRIBUTARY_RANK");
  if (rank == nullptr) rank = std::getenv("RANK");
  if (arguments.exit >= 0 && rank != nullptr && std::string(rank) == "1") {
    std::printf("this rank has no data\n");
    return static_cast<int>(arguments.exit);
  }
  const absl::Status status =
      Run(arguments, coordinator == nullptr ? "" : coordinator, rank);
  if (status.ok()) return 0;
  std::printf("%s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace tributary

int main(int argc, char** argv) { return tributary::Main(argc, argv); }
