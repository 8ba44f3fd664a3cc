// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/testing/npy.h"
#include "tests/testing/paths.h"
#include "tests/testing/process.h"
#include "tests/testing/temporary_folder.h"

namespace tributary::testing {

// A job of two workers on 200 rows of 8 numbers and two classes, which lie in
// features.npy and labels.npy: 10 steps an epoch, checkpoints every 10 steps.
class ReplayedRunsTest : public TemporaryFolderTest {
 protected:
  static constexpr int kRows = 200;
  static constexpr int kColumns = 8;
  static constexpr int kSteps = 40;
  static constexpr uint32_t kFlipped = 1 << 10;

  void SetUp() override {
    WriteData("features.npy");
    WriteJob("job.yaml", "strategy: {parameter_server: {sync: bsp}}\n");
  }

  // flipped_row: flips a bit of column 3 of this row; -1: none. On some
  // processors, rounding can hide a lower bit for an epoch or two.
  void WriteData(const std::string& name, int flipped_row = -1) const {
    std::vector<float> features;
    std::vector<int64_t> labels;
    uint32_t state = 1;
    for (int row = 0; row < kRows; ++row) {
      for (int column = 0; column < kColumns; ++column) {
        state = state * 1664525 + 1013904223;
        features.push_back(static_cast<float>(state >> 8) / (1 << 23) - 1);
      }
      labels.push_back(features[row * kColumns] > 0 ? 1 : 0);
    }
    if (flipped_row >= 0) {
      float& value = features[flipped_row * kColumns + 3];
      value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ kFlipped);
    }
    WriteNpy(Path(name), {kRows, kColumns}, features);
    WriteNpy(Path("labels.npy"), {kRows}, labels);
  }

  // `strategy`: the strategy and what follows it; `training`: further fields of
  // training.
  void WriteJob(const std::string& name, const std::string& strategy,
                const std::string& training = "") const {
    Write(name, R"(name: replayed
model:
  sequential:
    - linear: {in: 8, out: 16}
    - batch_norm: {features: 16}
    - relu
    - dropout: {p: 0.25}
    - linear: {in: 16, out: 2}
data:
  train: {npy: {features: features.npy, labels: labels.npy}}
  batch_size: 5
training: {steps: 40, loss: cross_entropy, gradient_accumulation: 2,
  optimizer: {adam: {learning_rate: 0.01}})" +
                    training + "}\ncheckpoint: {every_steps: 10, keep: 9}\n" +
                    strategy);
  }

  int Run(std::vector<std::string> words) {
    words.insert(words.begin(), Program("tributary"));
    const ProcessResult result = RunProcess(words);
    output_ = result.output;
    return result.exit_code;
  }
  void Train(const std::string& run, std::vector<std::string> words = {},
             const std::string& job = "job.yaml") {
    words.insert(words.begin(), {Program("tributary"), "train", Path(job),
                                 "--run-dir", Path(run)});
    const ProcessResult result = RunWithEveryCheckpoint(words, Path(run));
    output_ = result.output;
    ASSERT_EQ(result.exit_code, 0) << output_;
  }
  // Trains with an environment variable set, and restores it afterwards.
  void TrainWith(const std::string& name, const std::string& value,
                 const std::string& run) {
    const char* const before = std::getenv(name.c_str());
    const std::string kept = before == nullptr ? "" : before;
    setenv(name.c_str(), value.c_str(), 1);
    Train(run);
    if (before == nullptr) {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), kept.c_str(), 1);
    }
  }
  // Copies the record of a finished run.
  void Copy(const std::string& from, const std::string& to) const {
    std::filesystem::copy(Path(from), Path(to),
                          std::filesystem::copy_options::recursive);
  }
  nlohmann::json Json(const std::string& file) const {
    return nlohmann::json::parse(Read(file));
  }
  // The lines of metrics.jsonl.
  std::vector<nlohmann::json> Metrics(const std::string& run) const {
    std::vector<nlohmann::json> lines;
    std::istringstream stream(Read(run + "/metrics.jsonl"));
    for (std::string line; std::getline(stream, line);) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  }
  // Name and bytes of every file below a folder.
  std::map<std::string, std::string> Files(const std::string& name) const {
    std::map<std::string, std::string> files;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(Path(name))) {
      const std::string path =
          std::filesystem::relative(entry.path(), folder()).string();
      files[path] = entry.is_regular_file() ? Read(path) : "directory";
    }
    return files;
  }

  std::string output_;
};

}  // namespace tributary::testing
