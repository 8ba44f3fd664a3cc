// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common/job/sources/synthetic_sizes.h"

namespace tributary {

// Generated samples with a known optimum: a teacher model draws the labels, so
// the best loss that any model can reach is known (docs/data.md). Every
// value is a function of (seed, row), so any process can make any rows. All
// math is in float64.

// Uniform in (0, 1), and standard normal (Box-Muller), for the counters (a, b)
// of a seed.
double UniformAt(uint64_t seed, uint64_t a, uint64_t b);
double NormalAt(uint64_t seed, uint64_t a, uint64_t b);

// Clicks like Criteo's: 13 numbers, 8 category ids with long tails, and a click
// that a logistic teacher with interactions draws. Over many rows the click
// rate is .2066; the best AUC is .8149 and the best log-loss .3942.
class ClickModel {
 public:
  static constexpr int kDense = kCtrNumbers;
  static constexpr int kTables = kCtrTables;
  static constexpr int kTableSizes[kTables] = {10,  20,  40,   80,
                                               150, 500, 3000, 20000};
  struct Row {
    std::array<double, kDense> dense;
    std::array<int, kTables> ids;
    double probability;  // of the click
    bool click;
  };

  ClickModel();
  Row At(uint64_t seed, int64_t row) const;

 private:
  double Logit(const Row& row) const;

  std::array<double, kDense> dense_weight_;
  // [table][id]; empty for a table without such a term.
  std::array<std::vector<double>, kTables> id_weight_;
  std::array<std::vector<std::array<double, 2>>, kTables> id_vector_;
  std::array<std::vector<double>, kTables> id_slope_;
};

// y = x w / sqrt(20) + .3 + .5 noise. The best mean squared error is .25.
class LinearModel {
 public:
  static constexpr int kInputs = kLinearInputs;
  struct Row {
    std::array<double, kInputs> x;
    double mean;  // of y, given x
    double y;
  };

  LinearModel();
  Row At(uint64_t seed, int64_t row) const;

 private:
  std::array<double, kInputs> weight_;
};

// y = the output of a network with 16 inputs and 8 tanh units, + .1 noise. The
// best mean squared error is .0100 (R2 .9505); that of the best linear fit is
// .0425.
class MlpTeacherModel {
 public:
  static constexpr int kInputs = kMlpTeacherInputs;
  static constexpr int kHidden = 8;
  struct Row {
    std::array<double, kInputs> x;
    double mean;
    double y;
  };

  MlpTeacherModel();
  Row At(uint64_t seed, int64_t row) const;

 private:
  std::array<std::array<double, kInputs>, kHidden> weight_;
  std::array<double, kHidden> bias_;
  std::array<double, kHidden> output_;
};

// A stream of 16 different tokens. Each is drawn given the two tokens before
// it, which are 0 at the start. The best cross entropy is 1.9943 nats given the
// last two tokens, 2.6827 given the last one, and 2.7701 given none.
class MarkovModel {
 public:
  static constexpr int kTokens = kMarkovTokens;

  MarkovModel();
  // Tokens 0 to count - 1 of the stream.
  std::vector<uint8_t> Stream(uint64_t seed, int64_t count) const;

 private:
  std::vector<std::array<double, kTokens>> probability_;
};

}  // namespace tributary
