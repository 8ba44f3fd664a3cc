#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/base/mutation.h"
#include "tests/simulation/job/context.h"
#include "tests/simulation/processes/member_agent.h"
#include "tests/simulation/processes/simulated_server.h"
#include "tests/simulation/processes/transfer_round.h"
#include "tributary/v1/plan.pb.h"

namespace tributary::simulation {

// One rank's work: RunWorker, Trainer, ParameterServerSynchronizer and
// ParameterClient without threads.
class SimulatedRank {
 public:
  struct Options {
    std::optional<uint32_t> wanted_index;
    bool adopted = false;
    // Called when the coordinator wants this process to take over another rank.
    std::function<SimulatedRank*(uint32_t rank)> on_adopt;
    std::function<void(const absl::Status&)> on_end;
  };
  SimulatedRank(Context* context, Process* process, Options options);

  void Start();
  // Drops all of its future events.
  void LetGo();

  bool ended() const { return ended_; }
  std::optional<uint32_t> rank() const { return rank_; }
  uint64_t epoch() const { return epoch_; }
  // True when it waits only for answers of servers.
  bool WaitsForServers() const;
  // True when it has finished all steps and waits for the others.
  bool Finished() const {
    return phase_ == Phase::kFinishing || phase_ == Phase::kWaitingForDone;
  }
  // "pushes step 3"
  std::string Doing() const;

 private:
  enum class Phase {
    kJoining,
    kDeclaring,
    kWaitingForPlan,
    kReadingClock,
    kInitializing,
    kPulling,
    kAtGate,  // asks whether the next step may start
    kComputing,
    kPushing,
    kCatchingUp,
    kFinishing,
    kWaitingForDone,
    kWaitingForNews,  // calls failed; asks for a new plan
    kEnding,
  };

  void After(int64_t micros, World::Kind kind, std::function<void()> then);
  void SetPhase(Phase phase);
  void Joined(const absl::Status& status);
  void AwaitPlan();
  void BeginPlan(const v1::Plan& plan);
  void ReadClock(int shard);
  void ClockKnown();
  void PullStart();
  void StartKnown(int64_t step);
  void NextStep();
  void Compute();
  void Push();
  void FinishStep();
  void Report(int64_t finished);
  void Finish();
  void OnNews();
  // The work under this plan ended with an error.
  void PlanFailed(const absl::Status& status);
  bool NothingIsAwaited();
  void NoNews();
  void End(const absl::Status& status);

  void ForEachBlock(const std::function<void(const Block&)>& visit) const;
  void AddPull(const Block& block, int64_t version, bool exact,
               std::optional<Reader> reader);
  void AddPush(const Block& block);
  absl::Status TakeWeights(const Block& block, WeightsSnapshot weights);
  int64_t OldestVersion() const;
  // Whether a reply belongs to an earlier phase of this rank.
  bool OfAnotherPhase(int64_t timer) const {
    return timer != timer_ && !TRIBUTARY_MUTATED("late-reply-accepted");
  }

  Context* const context_;
  Process* const process_;
  const Options options_;
  MemberAgent member_;
  TransferRound round_;
  std::optional<uint32_t> rank_;
  bool ended_ = false;
  Phase phase_ = Phase::kJoining;

  uint64_t epoch_ = 0;
  v1::Plan plan_;
  std::optional<PartitionPlan> cut_;
  bool initialized_ = true;
  int64_t clock_steps_ = 0;
  int64_t clock_begun_ = 0;
  int64_t clock_deadline_ = 0;
  bool clock_calling_ = false;

  int64_t step_ = 0;
  int64_t newest_version_ = 0;
  std::map<std::pair<int, int>, int64_t> versions_;  // [(shard, block)]
  Tensors weights_;
  Tensors gradient_;
  absl::Status failure_;  // while waiting for news
  int64_t patience_ = 0;
  int64_t quiet_since_ = 0;
  int64_t quiet_answers_ = 0;
  int64_t timer_ = 0;  // invalidates earlier phases' replies
  std::map<uint32_t, SimulatedRank*> adopted_;  // until they end
};

}  // namespace tributary::simulation
