// SPDX-License-Identifier: Apache-2.0
#include "cli/run/processes/hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using testing::StatusIs;

using Words = std::vector<std::string>;

constexpr char kListen[] = "10.0.0.1:0";

// With a launcher that every machine has.
absl::StatusOr<Hosts> Make(Words workers, Words servers = {},
                           std::string launch = "/bin/sh {host}",
                           std::string listen = kListen) {
  return Hosts::Create({.listen = std::move(listen),
                        .worker_hosts = std::move(workers),
                        .server_hosts = std::move(servers),
                        .launch = std::move(launch)});
}

TEST(HostsTest, WithoutAnyEverythingIsOnThisMachine) {
  // Neither the launcher nor the address is looked at.
  const auto hosts = Make({}, {}, "nobody's", "127.0.0.1:0");
  TRIBUTARY_ASSERT_OK(hosts);
  EXPECT_FALSE(hosts->given());
  EXPECT_EQ(hosts->Server(3).At(0), "127.0.0.1:0");
  EXPECT_THAT(hosts->Worker(3).Command({"/bin/w", "a b"}),
              ElementsAre("/bin/w", "a b"));
  EXPECT_EQ(hosts->FarFromFirstWorker().name(), "127.0.0.1");
}

TEST(HostsTest, ProcessesGoOverThemInTurn) {
  const auto hosts = Make({"a", "b"}, {"c", "d", "e"});
  TRIBUTARY_ASSERT_OK(hosts);
  EXPECT_TRUE(hosts->given());
  EXPECT_EQ(hosts->Worker(0).name(), "a");
  EXPECT_EQ(hosts->Worker(1).name(), "b");
  EXPECT_EQ(hosts->Worker(4).name(), "a");
  EXPECT_EQ(hosts->Server(1).name(), "d");
  EXPECT_EQ(hosts->Server(3).name(), "c");
}

TEST(HostsTest, ServersAreWithTheWorkersUnlessSaidOtherwise) {
  const auto hosts = Make({"a", "b"});
  TRIBUTARY_ASSERT_OK(hosts);
  EXPECT_EQ(hosts->Server(0).name(), "a");
  EXPECT_EQ(hosts->Server(1).name(), "b");
}

TEST(HostsTest, WorkersOfAHostTakeItsDevicesInTurn) {
  const auto hosts = Make({"a", "b", "a"});  // host a has two workers
  TRIBUTARY_ASSERT_OK(hosts);
  EXPECT_EQ(hosts->LocalRank(0), 0);
  EXPECT_EQ(hosts->LocalRank(1), 0);
  EXPECT_EQ(hosts->LocalRank(2), 1);
  EXPECT_EQ(hosts->LocalRank(3), 2);
  EXPECT_EQ(hosts->LocalRank(4), 1);
}

TEST(HostsTest, TheLinkToMeasureLeadsToAnotherHost) {
  EXPECT_EQ(Make({"a", "a", "b"})->FarFromFirstWorker().name(), "b");
  EXPECT_EQ(Make({"a"}, {"a", "s"})->FarFromFirstWorker().name(), "s");
  EXPECT_EQ(Make({"a"})->FarFromFirstWorker().name(), "a");
}

TEST(HostsTest, Ipv6AddressesStandInBracketsWithAPortAlone) {
  for (const char* name : {"fd00::2", "[fd00::2]"}) {
    const auto hosts = Make({name});
    TRIBUTARY_ASSERT_OK(hosts);
    EXPECT_EQ(hosts->Worker(0).At(7071), "[fd00::2]:7071");
    EXPECT_THAT(hosts->Worker(0).Command({"/w"}),
                ElementsAre("/bin/sh", "fd00::2", "/w"));
  }
}

TEST(HostsTest, TheProgramsWordsFollowTheLaunchersAsTheyAre) {
  const auto hosts = Make({"a"}, {}, "/bin/sh -e 'on {host}' now");
  TRIBUTARY_ASSERT_OK(hosts);
  EXPECT_THAT(hosts->Worker(0).Command({"/bin/w", "--set", "x={y: '1'}"}),
              ElementsAre("/bin/sh", "-e", "on a", "now", "/bin/w", "--set",
                          "x={y: '1'}"));
}

TEST(HostsTest, WhereAShellSplitsThemTheyAreOneWord) {
  const auto hosts = Make({"a"}, {}, "/bin/sh {host} \"cd / && {command}\"");
  TRIBUTARY_ASSERT_OK(hosts);
  EXPECT_THAT(hosts->Worker(0).Command({"/bin/w", "--set", "x={y: '1'}", ""}),
              ElementsAre("/bin/sh", "a",
                          "cd / && /bin/w --set 'x={y: '\\''1'\\''}' ''"));
}

TEST(HostsTest, WhatIsNoHostIsRefused) {
  // An option of the launcher, a user, a port, two words, nothing.
  for (const char* wrong : {"-oProxyCommand=x", "me@a", "a:22", "a b", "",
                            "{command}", "$(x)", "[a]b", "1:2"}) {
    EXPECT_THAT(Make({"a", wrong}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         "--worker-hosts: wanted names or addresses of hosts"))
        << wrong;
    EXPECT_THAT(
        Make({"a"}, {wrong}),
        StatusIs(absl::StatusCode::kInvalidArgument, "--server-hosts: wanted"))
        << wrong;
  }
}

TEST(HostsTest, ALauncherThatCannotBeIsRefused) {
  const auto refused = [](const char* launch) {
    return Make({"a"}, {}, launch).status();
  };
  EXPECT_THAT(refused("/bin/sh 'on {host}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "--launch: a ' does not end in \"/bin/sh 'on {host}\""));
  EXPECT_THAT(refused("/bin/sh {host} \\"),
              StatusIs(absl::StatusCode::kInvalidArgument, "nothing follows"));
  EXPECT_THAT(refused("ssh somebody"),
              StatusIs(absl::StatusCode::kInvalidArgument, "wanted {host}"));
  EXPECT_THAT(refused(""),
              StatusIs(absl::StatusCode::kInvalidArgument, "wanted {host}"));
  EXPECT_THAT(refused("no-such-launcher {host}"),
              StatusIs(absl::StatusCode::kNotFound,
                       "there is no program no-such-launcher"));
}

TEST(HostsTest, ACoordinatorThatHostsCannotReachIsRefused) {
  for (const char* own :
       {"127.0.0.1:0", "localhost:7070", "0.0.0.0:0", "[::]:0", "[::1]:7070"}) {
    EXPECT_THAT(
        Make({"a"}, {}, "/bin/sh {host}", own),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 "--listen: wanted an address of this machine at which the "
                 "hosts reach the coordinator"))
        << own;
  }
  EXPECT_THAT(Make({"a"}, {}, "/bin/sh {host}", "10.0.0.1"),
              StatusIs(absl::StatusCode::kInvalidArgument, "HOST:PORT"));
}

// A scontrol and an srun, found first in the PATH, which print what they get.
class SlurmHostsTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override {
    WriteProgram("srun", "#!/bin/sh\n");
    Scontrol(
        "echo NodeName=n1 Arch=x86_64 NodeAddr=10.0.0.1 NodeHostName=a\n"
        "echo NodeName=n2 Arch=x86_64 NodeAddr=fd00::2 NodeHostName=b\n");
    setenv("PATH", absl::StrCat(folder(), ":", path_).c_str(), 1);
  }
  void TearDown() override { setenv("PATH", path_.c_str(), 1); }

  void Scontrol(const std::string& body) {
    WriteProgram("scontrol", "#!/bin/sh\necho \"$@\" > asked\n" + body);
  }
  void WriteProgram(const std::string& name, const std::string& text) {
    Write(name, absl::StrReplaceAll(text, {{"asked", Path("asked")}}));
    std::filesystem::permissions(Path(name), std::filesystem::perms::owner_all);
  }

 private:
  const std::string path_ = getenv("PATH");
};

absl::StatusOr<Hosts> OfSlurm(std::string launch = "slurm",
                              std::string this_node = "n2",
                              std::string listen = kListenHere) {
  return Hosts::Create(
      {.listen = std::move(listen),
       .launch = std::move(launch),
       .slurm = {.node_list = "n[1-2]", .this_node = std::move(this_node)}});
}

TEST_F(SlurmHostsTest, NodesAreAskedForAndReachedAtTheirAddresses) {
  const auto hosts = OfSlurm();
  TRIBUTARY_ASSERT_OK(hosts);
  EXPECT_EQ(Read("asked"), "--oneliner show node n[1-2]\n");
  EXPECT_TRUE(hosts->given());
  EXPECT_EQ(hosts->Worker(0).At(7), "10.0.0.1:7");
  EXPECT_EQ(hosts->Worker(1).At(7), "[fd00::2]:7");
  EXPECT_EQ(hosts->Server(2).name(), "n1");
  EXPECT_EQ(hosts->LocalRank(3), 1);
  EXPECT_EQ(hosts->listen(), "[fd00::2]:0");
}

TEST_F(SlurmHostsTest, AStepSharesItsNodeAndIgnoresSigterm) {
  const auto hosts = OfSlurm("slurm --mem=0");
  TRIBUTARY_ASSERT_OK(hosts);
  EXPECT_THAT(hosts->Worker(1).Command({"/bin/w", "a b"}),
              ElementsAre(Path("srun"), "--overlap", "--nodes=1", "--ntasks=1",
                          "--nodelist=n2", "--cpu-bind=none", "--mpi=none",
                          "--mem=0", "sh", "-c", "trap \"\" TERM; exec \"$@\"",
                          "sh", "/bin/w", "a b"));
}

TEST_F(SlurmHostsTest, AnAddressThatIsGivenIsTaken) {
  const auto hosts = OfSlurm("slurm", "n2", "10.0.0.9:7070");
  TRIBUTARY_ASSERT_OK(hosts);
  EXPECT_EQ(hosts->listen(), "10.0.0.9:7070");
}

TEST_F(SlurmHostsTest, OutsideOfTheNodesAnAddressIsWanted) {
  EXPECT_THAT(OfSlurm("slurm", ""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "--listen: wanted an address of this machine"));
}

TEST_F(SlurmHostsTest, WhatSlurmDoesNotTellIsAnError) {
  EXPECT_THAT(Hosts::Create({.launch = "slurm"}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "--launch slurm: wanted an allocation of Slurm"));
  EXPECT_THAT(Hosts::Create({.worker_hosts = {"a"}, .launch = "slurm"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "--worker-hosts is not wanted"));
  Scontrol("echo no such node >&2; exit 1\n");
  EXPECT_THAT(OfSlurm(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                  "failed: no such node"));
  Scontrol("echo nothing\n");
  EXPECT_THAT(OfSlurm(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                  "tells no node of the allocation"));
  Scontrol("echo NodeName=n1 State=DOWN\n");
  EXPECT_THAT(OfSlurm(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                  "no NodeAddr of the node n1"));
}

TEST(IsSlurmLaunchTest, OnlyTheWordItselfMeansSlurm) {
  EXPECT_TRUE(IsSlurmLaunch("slurm"));
  EXPECT_TRUE(IsSlurmLaunch("slurm --mem=0"));
  EXPECT_FALSE(IsSlurmLaunch("slurmish {host}"));
  EXPECT_FALSE(IsSlurmLaunch("ssh slurm"));
}

TEST(SplitWordsTest, BlanksQuotesAndBackslashesAreAShells) {
  EXPECT_THAT(*SplitWords("  a\tb  "), ElementsAre("a", "b"));
  EXPECT_THAT(*SplitWords("a'b c'd \"e 'f'\" ''"),
              ElementsAre("ab cd", "e 'f'", ""));
  EXPECT_THAT(*SplitWords(R"(a\ b '\n' "\" \\ \n")"),
              ElementsAre("a b", "\\n", "\" \\ \\n"));
  EXPECT_THAT(SplitWords("\"a"),
              StatusIs(absl::StatusCode::kInvalidArgument, "does not end"));
}

TEST(SplitWordsTest, WhatIsJoinedIsSplitAgain) {
  const Words words = {"/a/b-c", "x={y: [1, 2]}", "it's", "", "\"$HOME\"\\"};
  EXPECT_EQ(*SplitWords(JoinForShell(words)), words);
}

}  // namespace
}  // namespace tributary
