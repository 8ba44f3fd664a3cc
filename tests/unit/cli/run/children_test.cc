// SPDX-License-Identifier: Apache-2.0
#include "cli/run/processes/children.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "absl/time/clock.h"
#include "tests/testing/soon.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using testing::kSoon;

class ChildrenTest : public testing::TemporaryFolderTest {
 protected:
  // A shell script as a child.
  ChildProcess::Options Script(const std::string& name,
                               const std::string& script) const {
    return {.name = name,
            .command = {"/bin/sh", "-c", script},
            .log_path = Path(name + ".log")};
  }
  static bool Alive(pid_t pid) { return kill(pid, 0) == 0; }

  // Returns the first failure when the end of every child is fatal.
  static std::string Failure(Children& children) {
    EXPECT_TRUE(children
                    .Tend([](const ChildProcess&, const std::string&) {
                      return Children::Loss::kFatal;
                    })
                    .ok());
    return children.FirstFailure();
  }
};

TEST_F(ChildrenTest, VariablesAreAddedToOurEnvironmentAndReplaceIt) {
  setenv("TRIBUTARY_TEST", "ours", 1);
  ChildProcess::Options options =
      Script("a", "echo $TRIBUTARY_TEST $TRIBUTARY_TESTS ${PATH:+path}");
  options.environment = {"TRIBUTARY_TEST=its", "TRIBUTARY_TESTS=more"};
  Children children(0);
  ASSERT_TRUE(children.Start(std::move(options)).ok());
  ASSERT_TRUE(children.WaitForAll(kSoon));
  EXPECT_EQ(LastLine(Path("a.log")), "its more path");
}

TEST_F(ChildrenTest, OneThatHasLeftWellIsNamedIfItIsWanted) {
  Children children(0);
  ASSERT_TRUE(children.Start(Script("a", "exit 0")).ok());
  ASSERT_TRUE(children.Start(Script("b", "echo done; exit 0")).ok());
  ASSERT_TRUE(children.Start(Script("c", "exit 1")).ok());
  ASSERT_TRUE(children.WaitForAll(kSoon));
  EXPECT_EQ(children.FirstLeft(
                [](const ChildProcess& child) { return child.name() != "a"; }),
            "b exited with code 0; its log ends: done");
  EXPECT_EQ(children.FirstLeft([](const ChildProcess&) { return false; }), "");
}

TEST_F(ChildrenTest, SuccessIsNoFailure) {
  Children children(/*max_restarts=*/1);
  ASSERT_TRUE(children.Start(Script("worker-0", "exit 0")).ok());
  ASSERT_TRUE(children.WaitForAll(kSoon));
  EXPECT_EQ(Failure(children), "");
}

TEST_F(ChildrenTest, ExitCodeAndLastLineOfTheLogAreTold) {
  Children children(/*max_restarts=*/1);
  ASSERT_TRUE(
      children
          .Start(Script("worker-1",
                        "echo starting; echo 'no such file: x.gz' >&2; exit 3"))
          .ok());
  ASSERT_TRUE(children.WaitForAll(kSoon));
  EXPECT_EQ(Failure(children),
            "worker-1 exited with code 3; its log ends: no such file: x.gz");
}

TEST_F(ChildrenTest, SignalIsToldByNumberAndName) {
  Children children(/*max_restarts=*/1);
  ASSERT_TRUE(children.Start(Script("server-0", "kill -SEGV $$")).ok());
  ASSERT_TRUE(children.WaitForAll(kSoon));
  EXPECT_EQ(Failure(children),
            "server-0 was killed by signal 11 (Segmentation fault) and an "
            "empty log");
}

TEST_F(ChildrenTest, AKillThatIsNotOursMayBeForWantOfMemory) {
  Children children(/*max_restarts=*/1);
  ASSERT_TRUE(children.Start(Script("worker-0", "kill -KILL $$")).ok());
  ASSERT_TRUE(children.WaitForAll(kSoon));
  EXPECT_EQ(Failure(children),
            "worker-0 was killed by signal 9 (Killed, perhaps out of memory) "
            "and an empty log");

  auto ours = ChildProcess::Start(Script("server-0", "exec sleep 1000"));
  ASSERT_TRUE(ours.ok());
  (*ours)->Kill();
  const absl::Time deadline = absl::Now() + kSoon;
  while (!(*ours)->Ended() && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ((*ours)->Obituary(),
            "server-0 was killed by signal 9 (Killed) and an empty log");
}

TEST_F(ChildrenTest, KilledOneIsBlamedBeforeThoseThatFailedBecauseOfIt) {
  Children children(/*max_restarts=*/1);
  ASSERT_TRUE(children.Start(Script("worker-0", "exit 1")).ok());
  ASSERT_TRUE(children.Start(Script("server-0", "kill -9 $$")).ok());
  ASSERT_TRUE(children.WaitForAll(kSoon));
  EXPECT_THAT(Failure(children), StartsWith("server-0 was killed by signal 9"));
}

// The coordinator's sentence already includes the end of the child.
TEST_F(ChildrenTest, OneThatIsBlamedAlreadyIsTheReason) {
  Children children(/*max_restarts=*/1);
  ASSERT_TRUE(children.Start(Script("server-0", "kill -9 $$")).ok());
  ASSERT_TRUE(children.Start(Script("worker-0", "kill -SEGV $$")).ok());
  ASSERT_TRUE(children.WaitForAll(kSoon));
  EXPECT_THAT(children.FirstKilled(), StartsWith("server-0 was killed"));
  EXPECT_THAT(children.FirstKilled("the push failed"),
              StartsWith("server-0 was killed"));
  EXPECT_EQ(children.FirstKilled(
                "worker 0 was lost, last heard at step 5: worker-0 was "
                "killed by signal 11 (Segmentation fault) and "
                "an empty log"),
            "");
}

// When several end at once, the first may be judged before the next is seen.
TEST_F(ChildrenTest, AnEndThatNobodyHasJudgedIsNoFailure) {
  Children children(/*max_restarts=*/1);
  ASSERT_TRUE(children.Start(Script("server-0", "kill -9 $$")).ok());
  ASSERT_TRUE(children.WaitForAll(kSoon));
  EXPECT_EQ(children.FirstFailure(), "");
  EXPECT_THAT(Failure(children), StartsWith("server-0 was killed by signal 9"));
}

TEST_F(ChildrenTest, WaitingHasADeadline) {
  Children children(/*max_restarts=*/1);
  ASSERT_TRUE(children.Start(Script("worker-0", "exec sleep 1000")).ok());
  EXPECT_FALSE(children.WaitForAll(absl::Milliseconds(20)));
}

TEST_F(ChildrenTest, OneThatIsStoppedIsKilledAndReplaced) {
  Children children(/*max_restarts=*/1);
  ASSERT_TRUE(children.Start(Script("worker-0", "kill -STOP $$")).ok());
  std::vector<std::string> asked;
  children.KillIf([&](const ChildProcess& child) {
    asked.push_back(child.name());
    return true;
  });
  children.KillIf([&](const ChildProcess&) { return true; });
  EXPECT_THAT(asked, ::testing::ElementsAre("worker-0"));
  ASSERT_TRUE(children.WaitForAll(kSoon));
  pid_t killed = 0;
  EXPECT_TRUE(children
                  .Tend([&](const ChildProcess& child, const std::string&) {
                    killed = child.pid();
                    return Children::Loss::kReplace;
                  })
                  .ok());
  EXPECT_GT(killed, 0);
  EXPECT_FALSE(Alive(killed));
  EXPECT_EQ(children.FirstFailure(), "") << "another one runs";
}

TEST_F(ChildrenTest, OneThatEndsAgainAndAgainIsReplacedAfterPauses) {
  ManualClock clock;
  Children children(/*max_restarts=*/2, &clock);
  ASSERT_TRUE(children.Start(Script("worker-0", "echo begins; exit 1")).ok());
  int judged = 0;
  const auto tend = [&] {
    EXPECT_TRUE(children.WaitForAll(kSoon));
    EXPECT_TRUE(children
                    .Tend([&](const ChildProcess&, const std::string&) {
                      ++judged;
                      return Children::Loss::kReplace;
                    })
                    .ok());
  };
  tend();  // at once
  tend();
  tend();
  EXPECT_EQ(judged, 2) << "it waits for its turn";
  clock.AdvanceMicros(RestartBudget::kFirstPauseMicros);
  tend();
  tend();
  EXPECT_EQ(judged, 3);
  EXPECT_THAT(children.FirstFailure(), StartsWith("worker-0 exited with code"));
  EXPECT_EQ(Read("worker-0.log"), "begins\nbegins\nbegins\n");
}

TEST_F(ChildrenTest, AFileLimitThatKeepsAnotherFromStartingIsNamed) {
  Children children(/*max_restarts=*/1);
  ASSERT_TRUE(children.Start(Script("server-0", "kill -9 $$")).ok());
  ASSERT_TRUE(children.WaitForAll(kSoon));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {3, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status status =
      children.Tend([](const ChildProcess&, const std::string&) {
        return Children::Loss::kReplace;
      });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("server-0 was killed by signal 9"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cannot start /bin/sh: this process has as many files "
                        "and connections open as it may, 3 (ulimit -n)"));
}

TEST_F(ChildrenTest, DestructorLeavesNobodyBehind) {
  pid_t pid = 0;
  {
    auto child =
        ChildProcess::Start(Script("worker-0", "exec sleep 1000")).value();
    pid = child->pid();
    EXPECT_TRUE(Alive(pid));
    EXPECT_FALSE(child->Ended());
  }
  EXPECT_FALSE(Alive(pid));
}

TEST_F(ChildrenTest, ChildIsInAProcessGroupOfItsOwn) {
  auto child =
      ChildProcess::Start(Script("worker-0", "exec sleep 1000")).value();
  EXPECT_EQ(getpgid(child->pid()), child->pid());
}

TEST_F(ChildrenTest, ChildDiesWithItsParent) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const ChildProcess::Options options = Script("worker-0", "exec sleep 1000");
  const pid_t parent = fork();
  if (parent == 0) {
    auto child = ChildProcess::Start(options);
    const pid_t pid = child.ok() ? (*child)->pid() : 0;
    [[maybe_unused]] const ssize_t n = write(ends[1], &pid, sizeof(pid));
    kill(getpid(), SIGKILL);  // no destructor runs
  }
  pid_t child = 0;
  ASSERT_EQ(read(ends[0], &child, sizeof(child)),
            static_cast<ssize_t>(sizeof(child)));
  ASSERT_GT(child, 0);
  ASSERT_EQ(waitpid(parent, nullptr, 0), parent);
  // This process cannot wait for that child: look until it is gone or a zombie.
  const auto gone = [&] {
    std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
    std::string pid, name, state;
    stat >> pid >> name >> state;
    return !stat || state == "Z" || state == "X";
  };
  const absl::Time deadline = absl::Now() + kSoon;
  while (!gone() && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_TRUE(gone());
  close(ends[0]);
  close(ends[1]);
}

TEST_F(ChildrenTest, ProgramThatIsNotThereIsNamed) {
  ChildProcess::Options options = Script("worker-0", "");
  options.command[0] = Path("tributary-worker");
  const auto child = ChildProcess::Start(options);
  EXPECT_EQ(child.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(child.status().message()),
              HasSubstr("tributary-worker: No such file"));
}

TEST_F(ChildrenTest, FilesOfTheParentAreNotTheChilds) {
  const int secret = open("/dev/null", O_RDONLY);  // not close-on-exec
  Children children(/*max_restarts=*/1);
  ASSERT_TRUE(children.Start(Script("worker-0", "exec ls /proc/self/fd")).ok());
  ASSERT_TRUE(children.WaitForAll(kSoon));
  close(secret);
  EXPECT_EQ(Read("worker-0.log"), "0\n1\n2\n3\n");  // 3: ls reads the folder
}

TEST_F(ChildrenTest, LastLineSkipsEmptyOnesAndCutsLongOnes) {
  EXPECT_EQ(LastLine(Write("a", "one\ntwo\n\n  \n")), "two");
  EXPECT_EQ(LastLine(Write("b", "")), "");
  EXPECT_EQ(LastLine(Write("c", "no end")), "no end");
  EXPECT_EQ(LastLine(Path("missing")), "");
  EXPECT_EQ(LastLine(Write("d", std::string(100000, 'x'))).size(), 2048u);
  EXPECT_EQ(LastLine(Write("e", "bell\a\x1b[31m")), "bell  [31m");
}

}  // namespace
}  // namespace tributary
