// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/fault_test.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "tests/testing/http/http_get.h"
#include "tests/testing/paths.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Uses dropout and accumulation; 40 epochs of 16 steps, the last one short.
constexpr char kJob[] = R"(name: fault
model:
  sequential:
    - linear: {in: 16, out: 96}
    - tanh
    - dropout: {p: 0.1}
    - linear: {in: 96, out: 1}
data:
  train: {synthetic: {kind: mlp_teacher, rows: 1250}}
  test: {synthetic: {kind: mlp_teacher, rows: 200, first_row: 1000000}}
  batch_size: 20
training:
  epochs: 40
  loss: mse
  gradient_accumulation: 2
  optimizer: {sgd: {learning_rate: 0.05, momentum: 0.9}}
cluster: {servers: 2, workers: 2, lease_seconds: 3}
)";

// Finds the processes by their working directory `folder`, which no program
// here changes.
std::set<pid_t> ProcessesIn(const std::string& folder) {
  std::set<pid_t> pids;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    int pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    const fs::path cwd = fs::read_symlink(entry.path() / "cwd", error);
    if (!error && cwd == folder) pids.insert(pid);
  }
  return pids;
}

// Whether any process of this machine listens on the port, by the kernel's
// table. Closed connections of the port, which the kernel keeps for a minute,
// do not count.
bool IsListenedOn(int port) {
  const std::string local = absl::StrFormat(":%04X ", port);
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream stream(table);
    for (std::string line; std::getline(stream, line);) {
      const size_t at = line.find(local);  // "ADDRESS:PORT ADDRESS:PORT STATE "
      const size_t peer = line.find(' ', at + local.size());
      if (at == std::string::npos || peer == std::string::npos) continue;
      if (line.compare(peer, 4, " 0A ") == 0) return true;  // TCP_LISTEN
    }
  }
  return false;
}

// The file in which the tests of a build share the sha256 of a run without
// faults: it is the same in all of them, for one job, one command line and the
// same programs. Empty: this is not ctest, which sets the folder, or the job
// has data that may change.
std::string UndisturbedFile(const std::string& job,
                            const std::vector<std::string>& words) {
  const char* state = getenv("XDG_STATE_HOME");
  if (state == nullptr || !absl::StrContains(job, "synthetic")) return "";
  std::string key = absl::StrCat(job, absl::StrJoin(words, "\n"));
  for (const char* name :
       {"tributary", "tributary-server", "tributary-worker"}) {
    const auto written = fs::last_write_time(testing::Program(name));
    absl::StrAppend(&key, "\n", written.time_since_epoch().count());
  }
  const fs::path folder = fs::path(state) / "undisturbed";
  fs::create_directories(folder);
  return folder / absl::StrCat(std::hash<std::string>()(key));
}

// The files in the first table of docs/run-directory.md.
std::set<std::string> DocumentedFiles() {
  std::ifstream file(testing::SourceFile("docs/run-directory.md"));
  std::set<std::string> names;
  const std::regex row(R"(\| `([^`]+)` \|.*)");
  for (std::string line; std::getline(file, line);) {
    std::smatch found;
    if (std::regex_match(line, found, row)) {
      names.insert(found[1]);
    } else if (!names.empty()) {
      break;
    }
  }
  return names;
}

std::string DocumentedNameOf(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  if (absl::StartsWith(name, "events.out.tfevents.")) {
    return "events.out.tfevents.*";
  }
  return entry.is_directory() ? name + "/" : name;
}

}  // namespace

void FaultTest::SetUp() {
  Write("job.yaml", kJob);
  fs::create_directory(Path("fired"));
}

bool FaultTest::Fired(const std::string& id) {
  return fs::exists(Path("fired/" + id));
}

std::unique_ptr<testing::RunningProcess> FaultTest::Start(
    std::vector<std::string> command) {
  command[0] = testing::Program(command[0]);
  std::vector<std::string> environment = environment_;
  if (!failpoints_.empty()) {
    environment.push_back("TRIBUTARY_FAILPOINT=" + failpoints_);
    environment.push_back("TRIBUTARY_FAILPOINT_FIRED=" + Path("fired"));
  }
  return RunningProcess::Start(
      {.command = command, .folder = folder(), .environment = environment});
}

std::unique_ptr<testing::RunningProcess> FaultTest::Train(
    const std::string& run, const std::vector<std::string>& words) {
  std::vector<std::string> command = {"tributary", "train", "job.yaml",
                                      "--run-dir", run};
  command.insert(command.end(), words.begin(), words.end());
  return Start(command);
}

std::unique_ptr<testing::RunningProcess> FaultTest::Coordinate(
    const std::string& run, std::string* address,
    const std::vector<std::string>& words) {
  std::vector<std::string> command = {"tributary-coordinator",
                                      "--job",
                                      "job.yaml",
                                      "--run-dir",
                                      run,
                                      "--listen",
                                      "127.0.0.1:0"};
  command.insert(command.end(), words.begin(), words.end());
  auto coordinator = Start(command);
  EXPECT_TRUE(coordinator->WaitForOutput("waits for", kSoon));
  std::smatch match;
  EXPECT_TRUE(
      std::regex_search(coordinator->output(), match,
                        std::regex("coordinator (\\S+:[0-9]+) waits for")));
  *address = match[1];
  return coordinator;
}

void FaultTest::ReplaceCoordinator(const std::string& run,
                                   const std::string& address,
                                   RunningProcess& coordinator) {
  coordinator.Signal(SIGKILL);
  EXPECT_EQ(coordinator.Wait(kSoon), 128 + SIGKILL);
  auto again = Start({"tributary-coordinator", "--job", "job.yaml", "--run-dir",
                      run, "--listen", address});
  EXPECT_EQ(again->Wait(kSoon), 0) << again->output();
}

void FaultTest::EditJob(const std::string& from, const std::string& to) {
  const std::string job = Read("job.yaml");
  const std::string edited = absl::StrReplaceAll(job, {{from, to}});
  EXPECT_NE(job, edited) << from;
  Write("job.yaml", edited);
}

json FaultTest::Summary(const std::string& run) {
  return json::parse(Read(run + "/summary.json"));
}

std::string FaultTest::Sha256(const std::string& run) {
  return Summary(run)["weights_sha256"];
}

std::string FaultTest::Undisturbed(const std::vector<std::string>& words) {
  const std::string known = UndisturbedFile(Read("job.yaml"), words);
  std::string sha256;
  if (std::ifstream(known) >> sha256) return sha256;
  auto train = Train("undisturbed", words);
  EXPECT_EQ(train->Wait(kSoon), 0) << train->output();
  sha256 = Sha256("undisturbed");
  if (!HasFailure() && !known.empty()) {
    const std::string part = absl::StrCat(known, ".", getpid());
    std::ofstream(part) << sha256 << "\n";
    fs::rename(part, known);
  }
  return sha256;
}

double FaultTest::SumOverServers(const std::string& run,
                                 const std::string& metric,
                                 const std::string& labels) {
  const json groups = json::parse(Read(run + "/prometheus-targets.json"),
                                  nullptr, /*allow_exceptions=*/false);
  if (!groups.is_array()) return 0;
  const std::regex series("\n" + metric + R"(\{shard="[0-9]+")" + labels +
                          R"(\} (\S+)\n)");
  double sum = 0;
  for (const json& group : groups) {
    if (group["labels"]["job"] != "tributary-server") continue;
    for (const std::string target : group["targets"]) {
      const int port = std::stoi(target.substr(target.rfind(':') + 1));
      const std::string page = testing::HttpGet(port, "/metrics").body;
      std::smatch found;
      if (std::regex_search(page, found, series)) sum += std::stod(found[1]);
    }
  }
  return sum;
}

pid_t FaultTest::PidOf(const std::string& run, const std::string& name) {
  const std::string log = Read(run + "/logs/coordinator.log");
  const std::regex pattern(name + " is .*pid ([0-9]+)");
  pid_t pid = 0;
  for (std::sregex_iterator it(log.begin(), log.end(), pattern), end; it != end;
       ++it) {
    pid = std::stoi((*it)[1]);
  }
  return pid;
}

std::string FaultTest::WaitForCheckpoint(const std::string& directory,
                                         const std::string& after) {
  std::string newest = after;
  const bool came = Eventually([&] {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(directory, error)) {
      const std::string name = entry.path().filename().string();
      if (name > newest && fs::exists(entry.path() / "manifest.ckpt", error)) {
        newest = name;
      }
    }
    return newest != after;
  });
  EXPECT_TRUE(came) << "no checkpoint in " << directory;
  return came ? newest : "";
}

void FaultTest::TellSeconds(const std::string& what, absl::Duration seconds) {
  const std::string text =
      absl::StrFormat("%.2f", absl::ToDoubleSeconds(seconds));
  RecordProperty("seconds_" + what, text);
  printf("%s: %s s\n", what.c_str(), text.c_str());
}

void FaultTest::ExpectNothingLeft() {
  ExpectNoProcess();
  ExpectNoPort();
  ExpectNoFile();
}

void FaultTest::ExpectNoProcess() {
  for (pid_t pid : ProcessesIn(folder())) {
    EXPECT_TRUE(testing::IsGone(pid, kAtOnce))
        << "process " << pid << " is left";
  }
  EXPECT_TRUE(ProcessesIn(folder()).empty());
}

void FaultTest::ExpectNoPort() {
  std::set<int> ports;
  const std::regex port(R"((?:port |[0-9a-z]:)([0-9]{4,5})\b)");
  for (const auto& entry : fs::recursive_directory_iterator(folder())) {
    if (entry.path().extension() != ".log") continue;
    std::ifstream stream(entry.path());
    const std::string log((std::istreambuf_iterator<char>(stream)), {});
    for (std::sregex_iterator it(log.begin(), log.end(), port), end; it != end;
         ++it) {
      ports.insert(std::stoi((*it)[1]));
    }
  }
  for (int port : ports) {
    // A process of another test may have got this port for a while.
    EXPECT_TRUE(Eventually([port] { return !IsListenedOn(port); })) << port;
  }
  if (HasFailure() || IsSkipped()) return;
  EXPECT_GE(ports.size(), fewest_ports_);
}

void FaultTest::ExpectNoFile() {
  const std::set<std::string> documented = DocumentedFiles();
  for (const auto& run : fs::directory_iterator(folder())) {
    if (!fs::exists(run.path() / "summary.json")) continue;
    for (const auto& entry : fs::directory_iterator(run.path())) {
      EXPECT_EQ(documented.count(DocumentedNameOf(entry)), 1u) << entry.path();
    }
    for (const auto& entry : fs::recursive_directory_iterator(run.path())) {
      const std::string name = entry.path().filename().string();
      EXPECT_FALSE(absl::StrContains(name, ".partial-")) << entry.path();
      if (absl::StartsWith(name, "step-")) {
        EXPECT_TRUE(fs::exists(entry.path() / "manifest.ckpt")) << entry.path();
      }
    }
  }
}

}  // namespace tributary
