// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "gtest/gtest.h"

namespace tributary {

// The lines of a good job that needs no file; tests spoil one line.
inline const std::vector<std::string>& GoodLines() {
  static const auto* const lines = new std::vector<std::string>{
      /* 1*/ "model:",
      /* 2*/ "  sequential:",
      /* 3*/ "    - linear: {in: 20, out: 8}",
      /* 4*/ "    - relu",
      /* 5*/ "    - linear: {in: 8, out: 1}",
      /* 6*/ "data:",
      /* 7*/ "  train: {synthetic: {kind: linear, rows: 1000}}",
      /* 8*/ "  batch_size: 16",
      /* 9*/ "training:",
      /*10*/ "  epochs: 2",
      /*11*/ "  loss: mse",
      /*12*/ "  optimizer: {sgd: {learning_rate: 0.1}}",
  };
  return *lines;
}

// The good job with `text` in place of one line; line 0 spoils nothing.
inline std::string JobWith(int line, const std::string& text) {
  std::string job;
  for (int i = 1; i <= static_cast<int>(GoodLines().size()); ++i) {
    job += (i == line ? text : GoodLines()[i - 1]) + "\n";
  }
  return job;
}

// Parses a text that must be a good job.
inline v1::JobSpec Parse(const std::string& text,
                         const std::vector<std::string>& overrides = {}) {
  const auto job = ParseJob(text, "job.yaml", overrides);
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? *job : v1::JobSpec();
}

}  // namespace tributary
