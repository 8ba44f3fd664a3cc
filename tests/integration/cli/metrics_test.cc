// SPDX-License-Identifier: Apache-2.0
// The metrics that the processes of a running job serve over HTTP, compared
// with docs/monitoring.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/testing/http/http_get.h"
#include "tests/testing/paths.h"
#include "tests/testing/process.h"
#include "tests/testing/running_process.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using testing::HttpGet;
using testing::kSoon;
using testing::RunningProcess;
using Json = nlohmann::json;

struct Documented {
  std::string type;
  std::set<std::string> labels;
};

// Parses the rows "| `name` | type | `label`, ... |" of docs/monitoring.md.
std::map<std::string, Documented> ReadTable() {
  std::map<std::string, Documented> table;
  std::ifstream file(testing::SourceFile("docs/monitoring.md"));
  const std::regex row(R"(\| `([a-z_]+)` \| (\w+) \|([^|]*)\|.*)");
  const std::regex label("`([a-z_]+)`");
  for (std::string line; std::getline(file, line);) {
    std::smatch found;
    if (!std::regex_match(line, found, row)) continue;
    const std::string type = found[2];
    if (type != "counter" && type != "gauge" && type != "histogram") continue;
    Documented& metric = table[found[1]];
    metric.type = type;
    const std::string labels = found[3];
    for (std::sregex_iterator it(labels.begin(), labels.end(), label), end;
         it != end; ++it) {
      metric.labels.insert((*it)[1]);
    }
  }
  return table;
}

class MetricsTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override {
    Write("job.yaml", R"(name: endless
model: {sequential: [{linear: {in: 20, out: 1}}]}
data:
  train: {synthetic: {kind: linear, rows: 100, seed: 1}}
  test: {synthetic: {kind: linear, rows: 20, seed: 1, first_row: 100}}
  batch_size: 10
training: {steps: 100000000, loss: mse, optimizer: {sgd: {learning_rate: 0.1}}}
cluster: {servers: 1, workers: 2}
checkpoint: {every_steps: 1000, keep: 1}
)");
    train_ = RunningProcess::Start(
        {.command = {Program(), "train", "job.yaml", "--run-dir", "run",
                     "--metrics-listen", "127.0.0.1:0"},
         .folder = folder()});
    ASSERT_TRUE(train_->WaitForOutput("prometheus-targets.json", kSoon));
    port_ = PortBehind("metrics: http://127.0.0.1:");
    coordinator_ =
        absl::StrCat("127.0.0.1:", PortBehind("coordinator 127.0.0.1:"));
  }

  static std::string Program() { return testing::Program("tributary"); }
  int PortBehind(const std::string& text) const {
    return std::stoi(
        train_->output().substr(train_->output().find(text) + text.size()));
  }

  // Polls until `holds` is true or `kSoon` has passed.
  template <typename Condition>
  static bool Eventually(Condition holds) {
    const absl::Time deadline = absl::Now() + kSoon;
    while (!holds()) {
      if (absl::Now() > deadline) return false;
      absl::SleepFor(absl::Milliseconds(5));
    }
    return true;
  }

  // The ports of all processes' metrics, by Prometheus's job label.
  std::multimap<std::string, int> Targets() const {
    std::multimap<std::string, int> ports;
    const std::string body = HttpGet(port_, "/targets").body;
    for (const Json& group : Json::parse(body, nullptr, false)) {
      for (const std::string target : group["targets"]) {
        ports.emplace(group["labels"]["job"],
                      std::stoi(target.substr(target.rfind(':') + 1)));
      }
    }
    return ports;
  }

  int PortOf(const std::string& job) const {
    const auto ports = Targets();
    const auto found = ports.find(job);
    return found == ports.end() ? 0 : found->second;
  }

  std::string Status() const {
    return testing::RunProcess(
               {Program(), "status", "--coordinator", coordinator_, "--json"})
        .output;
  }

  pid_t PidOfWorker(int rank) const {
    const Json status = Json::parse(Status());
    for (const Json& member : status["members"]) {
      if (member["role"] == "worker" && member["index"] == rank) {
        return member["pid"];
      }
    }
    return 0;
  }

  std::unique_ptr<RunningProcess> train_;
  int port_ = 0;
  std::string coordinator_;
};

TEST_F(MetricsTest, EverythingShownIsInTheTableAndEverythingThereIsShown) {
  ASSERT_TRUE(Eventually([&] { return Targets().size() == 4; }));
  // A worker evaluates at the end of each epoch of five steps.
  ASSERT_TRUE(Eventually([&] {
    const std::string page = HttpGet(port_, "/metrics").body;
    return absl::StrContains(page, "tributary_job_loss ") &&
           absl::StrContains(page, "tributary_job_test_metric{");
  }));
  const std::map<std::string, Documented> table = ReadTable();
  ASSERT_GT(table.size(), 50u);
  std::set<std::string> shown;
  for (const auto& [job, port] : Targets()) {
    std::string metric;
    std::istringstream page(HttpGet(port, "/metrics").body);
    for (std::string line; std::getline(page, line);) {
      std::smatch found;
      if (std::regex_match(line, found,
                           std::regex("# TYPE ([a-z_]+) ([a-z]+)"))) {
        metric = found[1];
        shown.insert(metric);
        ASSERT_EQ(table.count(metric), 1u) << metric << " of " << job;
        EXPECT_EQ(table.at(metric).type, found[2]) << metric;
      }
      if (line[0] == '#') continue;
      const std::regex label("([a-z_]+)=\"");
      std::set<std::string> labels;
      for (std::sregex_iterator it(line.begin(), line.end(), label), end;
           it != end; ++it) {
        labels.insert((*it)[1]);
      }
      labels.erase("le");  // the label of histogram buckets
      EXPECT_EQ(labels, table.at(metric).labels) << line;
    }
  }
  for (const auto& [metric, unused] : table) {
    // This job has no validation set. job_metrics_test checks this metric.
    if (metric == "tributary_job_validation_metric") continue;
    EXPECT_EQ(shown.count(metric), 1u) << metric;
  }
}

TEST_F(MetricsTest, TheFirstPageIsForPeopleAndWhatItReadsIsThere) {
  const testing::HttpReply page = HttpGet(port_, "/");
  EXPECT_THAT(page.headers, HasSubstr("Content-Security-Policy: default-src"));
  EXPECT_THAT(page.body, HasSubstr("<title>Tributary: status</title>"));
  EXPECT_THAT(train_->output(),
              HasSubstr(absl::StrCat("status page: http://127.0.0.1:", port_)));
  ASSERT_TRUE(Eventually([&] {
    const Json history =
        Json::parse(HttpGet(port_, "/history.json").body, nullptr, false);
    return !history["loss"].empty() && !history["evaluations"].empty() &&
           history["step_parts"].contains("wait_seconds");
  }));
  const Json status =
      Json::parse(HttpGet(port_, "/status.json").body, nullptr, false);
  EXPECT_EQ(status["name"], "endless");
  EXPECT_EQ(status["members"].size(), 3u);
  EXPECT_GT(status["members"][1]["last_step"]["step_seconds"], 0);
}

TEST_F(MetricsTest, AStoppedWorkerIsNamedByMetricsStatusAndHealth) {
  ASSERT_TRUE(Eventually([&] { return Targets().size() == 4; }));
  const int server = PortOf("tributary-server");
  ASSERT_TRUE(Eventually([&] {
    return absl::StrContains(
        HttpGet(server, "/metrics").body,
        "tributary_server_waiting_for_rank{shard=\"0\",rank=\"1\"}");
  }));
  const pid_t worker = PidOfWorker(1);
  ASSERT_GT(worker, 0);
  kill(worker, SIGSTOP);
  EXPECT_TRUE(Eventually([&] {
    return absl::StrContains(
        HttpGet(server, "/metrics").body,
        "tributary_server_waiting_for_rank{shard=\"0\",rank=\"1\"} 1\n");
  }));
  EXPECT_TRUE(Eventually([&] {
    return absl::StrContains(Status(), "\"waiting_for_ranks\": [\n        1\n");
  }));
  // A server that waits for a rank is healthy.
  const testing::HttpReply health = HttpGet(server, "/healthz");
  EXPECT_EQ(health.code, 200);
  EXPECT_THAT(health.body, HasSubstr("rank 1"));
  kill(worker, SIGCONT);
  EXPECT_TRUE(Eventually([&] {
    return absl::StrContains(
        HttpGet(server, "/metrics").body,
        "tributary_server_waiting_for_rank{shard=\"0\",rank=\"1\"} 0\n");
  }));
}

TEST_F(MetricsTest, AfterTheRunNobodyListensAndTheTargetsAreGone) {
  ASSERT_TRUE(Eventually([&] {
    return Json::parse(Read("run/prometheus-targets.json"), nullptr, false)
               .size() == 3;
  }));
  ASSERT_TRUE(
      Eventually([&] { return Json::parse(Status())["phase"] == "running"; }));
  const auto targets = Targets();
  train_->Signal(SIGINT);
  EXPECT_EQ(train_->Wait(kSoon), 130);
  EXPECT_EQ(Read("run/prometheus-targets.json"), "[]\n");
  for (const auto& [job, port] : targets) {
    EXPECT_EQ(HttpGet(port, "/metrics").code, 0) << job;
  }
}

}  // namespace
}  // namespace tributary
