#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/base/mutation.h"
#include "tests/simulation/context.h"
#include "tests/simulation/member_agent.h"
#include "tests/simulation/simulated_server.h"
#include "tests/simulation/transfer_round.h"
#include "tributary/v1/plan.pb.h"

namespace tributary::simulation {

// One rank's work: RunWorker, Trainer, ParameterServerSynchronizer and
// ParameterClient without threads.
class SimulatedRank {
 public:
  struct Options {
    std::optional<uint32_t> wanted_index;
    bool adopted = false;
    // Another rank that the coordinator wants this process to take over.
    std::function<SimulatedRank*(uint32_t rank)> on_adopt;
    std::function<void(const absl::Status&)> on_end;
  };
  SimulatedRank(Context* context, Process* process, Options options);

  void Start();
  // Nothing of it happens any more.
  void LetGo();

  bool ended() const { return ended_; }
  std::optional<uint32_t> rank() const { return rank_; }
  uint64_t epoch() const { return epoch_; }
  // It has sent something to servers and waits for their answers, and for
  // nothing else.
  bool WaitsForServers() const;
  // It has made all steps and waits for the others.
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
    kAtGate,  // asks whether the next step may begin
    kComputing,
    kPushing,
    kCatchingUp,
    kFinishing,
    kWaitingForDone,
    kWaitingForNews,  // its calls failed: is there a new plan?
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
  // The plan's work ended with an error.
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
  // Whether a reply comes for what this rank does not do any more.
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
  std::map<std::pair<int, int>, int64_t> versions_;  // by (shard, block)
  Tensors weights_;
  Tensors gradient_;
  absl::Status failure_;  // while it waits for news, and how long
  int64_t patience_ = 0;
  int64_t quiet_since_ = 0;
  int64_t quiet_answers_ = 0;
  int64_t timer_ = 0;  // of the phase; invalidates earlier ones
  std::map<uint32_t, SimulatedRank*> adopted_;  // until they end
};

}  // namespace tributary::simulation
