// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/files/safetensors.h"
#include "tests/testing/temporary_folder.h"

namespace tributary::testing {

// Run directories made by hand.
class RunFoldersTest : public TemporaryFolderTest {
 protected:
  struct Made {
    std::string name;
    int workers = 1;
    std::string strategy = "{parameter_server: {sync: bsp}}";
    std::string status = "done";
    std::string test = R"({"accuracy": 0.9, "loss": 0.5})";
    std::string validation = "{}";
    int64_t global_batch = 40;
    std::vector<std::string> metrics;   // lines
    std::vector<std::string> timeline;  // lines
    std::vector<float> weights = {3, 4};
    double server_optimizer_seconds = 0;
  };

  // A line of metrics.jsonl whose parts are given in milliseconds.
  static std::string Metrics(int step, double loss, double compute, double wait,
                             double peer, double push = 0,
                             double optimizer = 0) {
    return absl::StrFormat(
        R"({"step":%d,"epoch":1,"loss":%g,"samples":40,"step_seconds":%g,)"
        R"("data_seconds":0,"compute_seconds":%g,"push_seconds":%g,)"
        R"("wait_seconds":%g,"peer_seconds":%g,"optimizer_seconds":%g,)"
        R"("bytes_sent":4096,"bytes_received":8192})",
        step, loss, (compute + push + wait) / 1e3, compute / 1e3, push / 1e3,
        wait / 1e3, peer / 1e3, optimizer / 1e3);
  }

  std::string Make(const Made& made) const {
    std::filesystem::create_directories(Path(made.name));
    Write(made.name + "/job.yaml",
          absl::StrFormat(R"(name: small
model: {sequential: [{linear: {in: 20, out: 1}}]}
data: {train: {synthetic: {kind: linear, rows: 100}}, global_batch_size: %d}
training: {steps: 5, loss: mse, optimizer: {sgd: {learning_rate: 0.1}}}
strategy: %s
cluster: {servers: 1, workers: %d}
)",
                          made.global_batch, made.strategy, made.workers));
    std::string metrics, timeline;
    for (const std::string& line : made.metrics) metrics += line + "\n";
    for (const std::string& line : made.timeline) timeline += line + "\n";
    Write(made.name + "/metrics.jsonl", metrics);
    Write(made.name + "/timeline.jsonl", timeline);
    Write(made.name + "/summary.json",
          absl::StrFormat(
              R"({"status": "%s", "message": "why <not>", "started": "",
 "weights_sha256": %s, "test": %s,
 "validation": %s, "processes": [
 {"role": "coordinator", "peak_memory_bytes": 1},
 {"role": "server", "index": 0, "peak_memory_bytes": 20971520,
  "optimizer_seconds": %g},
 {"role": "worker", "index": 0, "peak_memory_bytes": 31457280},
 {"role": "worker", "index": 1, "peak_memory_bytes": 10485760}]})",
              made.status, made.weights.empty() ? "null" : "\"abc\"", made.test,
              made.validation, made.server_optimizer_seconds));
    if (!made.weights.empty()) {
      EXPECT_TRUE(WriteSafetensors(
                      Path(made.name + "/weights.safetensors"),
                      {{"0.bias", {static_cast<int64_t>(made.weights.size())}}},
                      {made.weights.data()})
                      .ok());
    }
    return Path(made.name);
  }
};

}  // namespace tributary::testing
