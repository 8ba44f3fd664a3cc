// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/testing/paths.h"
#include "tests/testing/running_process.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {

// Eight steps an epoch.
inline constexpr char kTwoEpochs[] = R"(name: small
model: {sequential: [{linear: {in: 20, out: 1}}]}
data: {train: {synthetic: {kind: linear, rows: 64}}, batch_size: 8}
training: {epochs: 2, loss: mse, optimizer: {sgd: {learning_rate: 0.01}}}
cluster: {servers: 1, workers: 1}
)";

// Trains small jobs and continues them.
class ResumeTest : public testing::TemporaryFolderTest {
 protected:
  // Returns the exit code; the output is in output_.
  int Run(std::vector<std::string> words) {
    words.insert(words.begin(), testing::Program("tributary"));
    const auto process =
        testing::RunningProcess::Start({.command = words, .folder = folder()});
    const int code = process->Wait(testing::kSoon);
    output_ = process->output();
    return code;
  }
  // Trains the first steps of kTwoEpochs into the run directory `run`.
  void Train(int steps, const std::string& run) {
    Write("job.yaml", kTwoEpochs);
    ASSERT_EQ(Run({"train", "job.yaml", "--run-dir", run, "--set",
                   "training.steps=" + std::to_string(steps)}),
              0)
        << output_;
  }
  // Continues to the end of the second epoch, unless the words say otherwise.
  int Resume(const std::string& from, const std::string& run,
             const std::vector<std::string>& words = {}) {
    std::vector<std::string> all = {
        "train", "--resume",         from, "--run-dir", run,
        "--set", "training.epochs=2"};
    all.insert(all.end(), words.begin(), words.end());
    return Run(all);
  }
  static void FlipByte(const std::string& file) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(-100, std::ios::end);
    const char byte = static_cast<char>(stream.peek() ^ 4);
    stream.seekp(-100, std::ios::end);
    stream.put(byte);
  }
  int64_t Samples(const std::string& run) {
    int64_t samples = 0;
    std::istringstream lines(Read(run + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      samples += nlohmann::json::parse(line)["samples"].get<int64_t>();
    }
    return samples;
  }
  nlohmann::json Summary(const std::string& run) {
    return nlohmann::json::parse(Read(run + "/summary.json"));
  }

  std::string output_;
};

}  // namespace tributary
