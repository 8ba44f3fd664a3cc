// SPDX-License-Identifier: Apache-2.0
// A job is attacked on all its ports, pages and Unix sockets while it trains,
// by strangers, by other users and by a peer that has stolen a worker's
// certificate. The job ends with the weights of a run that nobody attacked, its
// processes take no more memory than docs/failures.md#hostile-peers says, they
// stay healthy, and workers keep sharing memory. Lasts some seconds;
// tests/fault/hostile.sh runs it for a given time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/fault/fault_test.h"
#include "tests/fault/hostile/health_probe.h"
#include "tests/fault/hostile/hostile_neighbours.h"
#include "tests/fault/hostile/hostile_peers.h"
#include "tests/testing/paths.h"
#include "tests/testing/process.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kVeryLong = absl::Minutes(10);  // for one run

// The bounds in docs/failures.md#hostile-peers, in all and for each connection.
constexpr int64_t kMostMore = 768 << 20;
constexpr int64_t kMostOfConnection = 256 << 10;
// Holds a worker in the job's fifth step.
constexpr char kEarly[] = "worker-pushed:5";
// Silent connections to each page.
constexpr int kIdleReaders = 40;

// Returns a number that the environment sets.
int Setting(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  int number = 0;
  return text != nullptr && absl::SimpleAtoi(text, &number) ? number
                                                            : otherwise;
}

// The most memory that a process has used so far; 0: the process is gone.
int64_t PeakBytes(pid_t pid) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string word; status >> word;) {
    int64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes << 10;
  }
  return 0;
}

class HostileTest : public FaultTest {
 protected:
  void SetUp() override {
    FaultTest::SetUp();
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_max < 8192)
      GTEST_SKIP() << "this process may open fewer than 8192 files";
    // By default the address sanitizer keeps 256 MiB of freed memory.
    SetEnvironment(
        {"ASAN_OPTIONS=quarantine_size_mb=1:"
         "thread_local_quarantine_size_kb=16"});
    const auto made = testing::RunProcess(
        {testing::Program("tributary"), "certificates", "--out", Path("tls")});
    ASSERT_EQ(made.exit_code, 0) << made.output;
    // A shard of 600 KiB, and leases long enough for a busy machine.
    EditJob("out: 96", "out: 16384");
    EditJob("in: 96", "in: 16384");
    EditJob("learning_rate: 0.05", "learning_rate: 0.0001");
    EditJob("lease_seconds: 3", "lease_seconds: 60");
    EditJob("epochs: 40", absl::StrCat("epochs: ", epochs_));
    EditJob("cluster:",
            "strategy: {parameter_server: {transport: grpc}}\ncluster:");
  }

  // Trains with certificates, and with `idle` hostile connections of each kind;
  // 0: without attacks. The job waits at an early step until every attack has
  // begun and the servers' pages were read. Returns how long the run took.
  absl::Duration Run(const std::string& run, int idle) {
    const absl::Time begin = absl::Now();
    const std::vector<std::string> pages = {"--metrics-listen", "127.0.0.1:0",
                                            "--health-listen", "127.0.0.1:0"};
    std::vector<std::string> words = {"--tls", Path("tls/coordinator")};
    words.insert(words.end(), pages.begin(), pages.end());
    std::string address;
    auto coordinator = Coordinate(run, &address, words);
    std::vector<std::unique_ptr<RunningProcess>> members;
    for (const std::string role : {"server", "server", "worker", "worker"}) {
      words = {absl::StrCat("tributary-", role), "--tls",
               Path(absl::StrCat("tls/", role)), "--coordinator", address};
      words.insert(words.end(), pages.begin(), pages.end());
      const bool holds = idle > 0 && members.size() == 2;
      SetFailpoints(holds ? absl::StrCat(kEarly, ":hold") : "");
      members.push_back(Start(words));
    }
    std::atomic<bool> over{false};
    std::thread sampler([&] {
      while (!over) {
        Sample("coordinator", coordinator->pid());
        for (int s : {0, 1}) Sample("server", members[s]->pid());
        absl::SleepFor(absl::Milliseconds(20));
      }
    });
    std::unique_ptr<testing::HostilePeers> peers;
    std::unique_ptr<testing::HostileNeighbours> neighbours;
    std::unique_ptr<testing::HealthProbe> probe;
    if (idle > 0) {
      auto job = testing::Infiltrate(address, Path("tls/worker"));
      TRIBUTARY_EXPECT_OK(job);
      if (job.ok()) {
        const testing::Neighbourhood places =
            Places(*job, coordinator->pid(), members);
        if (!HasFailure()) {
          peers = std::make_unique<testing::HostilePeers>(*job, idle);
          neighbours = std::make_unique<testing::HostileNeighbours>(
              *job, places, kIdleReaders);
          probe = std::make_unique<testing::HealthProbe>(places);
          EXPECT_TRUE(Eventually([&] {
            return Fired(kEarly) && probe->has_looked() &&
                   NotBegun(peers->Counts()).empty() &&
                   NotBegun(neighbours->Counts()).empty();
          })) << "fired "
              << Fired(kEarly) << ", looked " << probe->has_looked()
              << ", not begun: " << NotBegun(peers->Counts())
              << NotBegun(neighbours->Counts());
        }
      }
      fs::remove(Path(absl::StrCat("fired/", kEarly)));
    }
    EXPECT_EQ(coordinator->Wait(kVeryLong), 0) << coordinator->output();
    if (probe != nullptr) {
      Expect(probe->End());
      for (const auto& counts : {peers->Counts(), neighbours->Counts()}) {
        for (const auto& [name, count] : counts) counts_[name] += count;
      }
      EXPECT_EQ(peers->let_through(), 0);
      EXPECT_EQ(neighbours->let_through(), 0);
    }
    peers = nullptr;
    neighbours = nullptr;
    over = true;
    sampler.join();
    for (auto& member : members) {
      EXPECT_EQ(member->Wait(kSoon), 0) << member->output();
    }
    return absl::Now() - begin;
  }

  // The attacks that have not yet begun, by name.
  static std::string NotBegun(const std::map<std::string, int64_t>& counts) {
    std::string names;
    for (const auto& [name, count] : counts) {
      if (count == 0) absl::StrAppend(&names, name, "; ");
    }
    return names;
  }

  static testing::Neighbourhood Places(
      const testing::AttackedJob& job, pid_t coordinator,
      const std::vector<std::unique_ptr<RunningProcess>>& members) {
    std::set<int> known(job.server_ports.begin(), job.server_ports.end());
    known.insert(job.coordinator_port);
    testing::Neighbourhood places;
    // The kernel's table of ports may miss some while it changes.
    EXPECT_TRUE(Eventually([&] {
      places = {};
      testing::LookAround(coordinator, known, &places);
      for (const auto& member : members) {
        testing::LookAround(member->pid(), known, &places);
      }
      return places.pages.size() == members.size() + 1;
    })) << places.pages.size();
    EXPECT_EQ(places.health_checks.size(), members.size() + 1);
    EXPECT_EQ(places.sockets.size(), 2u);
    return places;
  }

  void Expect(const testing::HealthProbe::Result& result) {
    // On a busy machine some answers come late.
    EXPECT_LT(2 * result.missed, result.asked);
    EXPECT_LT(2 * result.missed_pages, result.asked_pages);
    EXPECT_GT(result.looks, 0);
    if (result.looks > 0) {
      EXPECT_EQ(result.fewest_links, shares_memory_ ? 2 : 0);
    }
    health_.asked += result.asked;
    health_.missed += result.missed;
    health_.asked_pages += result.asked_pages;
    health_.missed_pages += result.missed_pages;
    health_.longest_streak =
        std::max(health_.longest_streak, result.longest_streak);
    if (shares_memory_) health_.looks += result.looks;
  }

  void Sample(const std::string& role, pid_t pid) {
    peaks_[role] = std::max(peaks_[role], PeakBytes(pid));
  }

  const int seconds_ = Setting("TRIBUTARY_HOSTILE_SECONDS", 1);
  const int idle_ = Setting("TRIBUTARY_HOSTILE_IDLE", 60);
  const int epochs_ = Setting("TRIBUTARY_HOSTILE_EPOCHS", 6);
  std::map<std::string, int64_t> peaks_;   // by role
  std::map<std::string, int64_t> counts_;  // of attacks
  bool shares_memory_ = false;
  testing::HealthProbe::Result health_;  // of all runs
};

TEST_F(HostileTest, TheJobEndsAsIfNobodyAttacked) {
  const absl::Duration alone = Run("alone", /*idle=*/0);
  const std::map<std::string, int64_t> before = std::exchange(peaks_, {});
  const std::string undisturbed = Sha256("alone");
  absl::Duration attacked;
  int runs = 0;
  // The first run uses gRPC; further runs alternate with shared memory.
  while ((runs < 1 || attacked < absl::Seconds(seconds_)) && !HasFailure()) {
    const std::string run = absl::StrCat("attacked-", runs++);
    attacked += Run(run, idle_);
    EXPECT_EQ(Sha256(run), undisturbed);
    EditJob(shares_memory_ ? "shared_memory" : "transport: grpc",
            shares_memory_ ? "grpc" : "transport: shared_memory");
    shares_memory_ = !shares_memory_;
  }
  TellSeconds("alone", alone);
  TellSeconds("attacked", attacked);
  printf("%d runs with the same weights\n", runs);
  for (const auto& [name, count] : counts_) {
    printf("%-24s %lld\n", name.c_str(), static_cast<long long>(count));
    EXPECT_GT(count, 0) << name;
  }
  printf(
      "health checks: %lld, missed %lld; on attacked pages %lld, missed "
      "%lld, at most %lld in a row; looks at shared memory: %lld\n",
      static_cast<long long>(health_.asked),
      static_cast<long long>(health_.missed),
      static_cast<long long>(health_.asked_pages),
      static_cast<long long>(health_.missed_pages),
      static_cast<long long>(health_.longest_streak),
      static_cast<long long>(health_.looks));
  EXPECT_GT(health_.asked, 0);
  for (const auto& [role, bytes] : peaks_) {
    const int64_t more = bytes - before.at(role);
    printf("%s: %lld MiB, alone %lld MiB\n", role.c_str(),
           static_cast<long long>(bytes >> 20),
           static_cast<long long>(before.at(role) >> 20));
    // Idle connections, with and without a certificate, go to three processes.
    EXPECT_LT(more, kMostMore + 2 * idle_ / 3 * kMostOfConnection) << role;
  }
}

}  // namespace
}  // namespace tributary
