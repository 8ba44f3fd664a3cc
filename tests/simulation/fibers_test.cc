// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/world/fibers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "common/host/steady_waits.h"
#include "tests/simulation/world/micros.h"

namespace tributary::simulation {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FibersTest : public ::testing::Test {
 public:
  void Say(const std::string& word) {
    said_.push_back(word + "@" + std::to_string(world_.now() / kMilli));
  }

 protected:
  class Quiet final : public Process {
   public:
    explicit Quiet(FibersTest* test) : Process(1, "worker-0"), test_(test) {}

   private:
    void LetGo() override { test_->fibers_.Kill(this); }
    FibersTest* const test_;
  };

  // Runs until nothing happens any more.
  void Run() {
    fibers_.Settle();
    while (world_.Step()) fibers_.Settle();
  }

  World world_{1, nullptr};
  Quiet process_{this};
  absl::Mutex mu_;
  std::vector<std::string> said_;
  Fibers fibers_{&world_};  // ends before what its threads use
};

TEST_F(FibersTest, AWaitEndsWithItsConditionOrItsTime) {
  bool ready ABSL_GUARDED_BY(mu_) = false;
  fibers_.Start(&process_, [&] {
    absl::MutexLock lock(&mu_);
    EXPECT_FALSE(
        AwaitFor(&mu_, absl::Condition(&ready), absl::Milliseconds(20)));
    Say("timed out");
    EXPECT_TRUE(AwaitFor(&mu_, absl::Condition(&ready), absl::Seconds(9)));
    Say("ready");
  });
  fibers_.Start(&process_, [&] {
    const absl::Duration begin = SteadyNow();
    SleepSteadily(absl::Milliseconds(50));
    EXPECT_EQ(SteadyNow() - begin, absl::Milliseconds(50));
    absl::MutexLock lock(&mu_);
    ready = true;
    Say("says so");
  });
  Run();
  EXPECT_THAT(said_, ElementsAre("timed out@20", "says so@50", "ready@50"));
}

TEST_F(FibersTest, AThreadIsJoined) {
  fibers_.Start(&process_, [&] {
    Thread thread([&] {
      SleepSteadily(absl::Milliseconds(7));
      Say("child");
    });
    thread.join();
    Say("parent");
  });
  Run();
  EXPECT_THAT(said_, ElementsAre("child@7", "parent@7"));
}

TEST_F(FibersTest, APausedProcessGoesOnLater) {
  fibers_.Start(&process_, [&] {
    SleepSteadily(absl::Milliseconds(7));
    Say("awake");
  });
  fibers_.Settle();
  process_.Pause(30 * kMilli);
  Run();
  EXPECT_THAT(said_, ElementsAre("awake@30"));
}

// The objects on the stacks are destroyed, and a destructor that joins another
// thread does not wait for ever.
TEST_F(FibersTest, DeathEndsEveryThread) {
  struct Joins {
    ~Joins() {
      thread.join();
      test->Say("joined");
    }
    FibersTest* test;
    Thread thread;
  };
  fibers_.Start(&process_, [&] {
    const Joins joins{this, Thread([this] {
                        const absl::Cleanup gone = [this] { Say("child"); };
                        SleepSteadily(absl::Hours(1));
                        ADD_FAILURE();
                      })};
    SleepSteadily(absl::Hours(1));
    ADD_FAILURE();
  });
  // This thread is in the destructor already.
  fibers_.Start(&process_, [&] {
    const Joins joins{this, Thread([] { SleepSteadily(absl::Hours(1)); })};
  });
  fibers_.Settle();
  process_.Die();
  EXPECT_THAT(said_, ElementsAre("child@0", "joined@0", "joined@0"));
  Run();
  EXPECT_EQ(world_.violation(), "");
}

TEST_F(FibersTest, ALoopThatNeverWaitsIsAViolation) {
  bool ends = false;
  fibers_.Start(&process_, [&] {
    absl::MutexLock lock(&mu_);
    const bool always = true;
    while (!ends) AwaitFor(&mu_, absl::Condition(&always), absl::Seconds(1));
  });
  Run();
  EXPECT_THAT(world_.violation(), HasSubstr("worker-0 turns in a loop"));
}

}  // namespace
}  // namespace tributary::simulation
