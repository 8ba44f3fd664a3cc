// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/synthetic_models.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "worker/train/data/readers/counter_random.h"

namespace tributary {
namespace {

// Numbers that keep the streams of a row's draws and the teachers' seeds apart.
constexpr uint64_t kIdStream = 1000;
constexpr uint64_t kNoiseStream = 1500;
constexpr uint64_t kClickStream = 2000;
constexpr uint64_t kClickTeacher = 1;
constexpr uint64_t kLinearTeacher = 2;
constexpr uint64_t kMlpTeacher = 3;
constexpr uint64_t kMarkovTeacher = 4;

// The click teacher's parameter `c` of index `i` in group `g`.
double ClickTeacher(uint64_t g, uint64_t i, uint64_t c) {
  return NormalAt(kClickTeacher, (g << 32) + i, c);
}

// Draws an id below `size` from a bounded power law, so that small ids are
// frequent.
int PowerLawId(double u, int size, double exponent) {
  const double power = 1 - exponent;
  const double x =
      std::pow((std::pow(size + 1.0, power) - 1) * u + 1, 1 / power);
  const double rank = std::floor(std::min(x, size + 0.5));
  return static_cast<int>(std::clamp(rank, 1.0, double(size))) - 1;
}

struct TablePair {
  int a, b;
};
constexpr TablePair kIdPairs[] = {{0, 1}, {0, 3}, {1, 2}, {2, 4}};
// A term of number d times a weight of the id in table j.
struct DensePair {
  int d, j;
};
constexpr DensePair kDensePairs[] = {{0, 2}, {1, 3}};

}  // namespace

double UniformAt(uint64_t seed, uint64_t a, uint64_t b) {
  return (static_cast<double>(HashBits(seed, a, b) >> 11) + 0.5) * 0x1p-53;
}

double NormalAt(uint64_t seed, uint64_t a, uint64_t b) {
  return std::sqrt(-2 * std::log(UniformAt(seed, a, 2 * b))) *
         std::cos(2 * std::numbers::pi * UniformAt(seed, a, 2 * b + 1));
}

ClickModel::ClickModel() {
  for (int d = 0; d < kDense; ++d) dense_weight_[d] = ClickTeacher(1, d, 0);
  for (int j = 0; j < kTables; ++j) {
    for (int id = 0; id < kTableSizes[j]; ++id) {
      id_weight_[j].push_back(ClickTeacher(10 + j, id, 0));
    }
  }
  for (int j = 0; j < 5; ++j) {  // the tables of kIdPairs
    for (int id = 0; id < kTableSizes[j]; ++id) {
      id_vector_[j].push_back(
          {ClickTeacher(100 + j, id, 0), ClickTeacher(100 + j, id, 1)});
    }
  }
  for (const DensePair& pair : kDensePairs) {
    for (int id = 0; id < kTableSizes[pair.j]; ++id) {
      id_slope_[pair.j].push_back(ClickTeacher(200 + pair.j, id, 0));
    }
  }
}

double ClickModel::Logit(const Row& row) const {
  double dense = 0;
  for (int d = 0; d < kDense; ++d) dense += dense_weight_[d] * row.dense[d];
  double ids = 0;
  for (int j = 0; j < kTables; ++j) {
    ids += (j < 6 ? 0.3 : 0.15) * id_weight_[j][row.ids[j]];
  }
  double pairs = 0;
  for (const TablePair& pair : kIdPairs) {
    const std::array<double, 2>& a = id_vector_[pair.a][row.ids[pair.a]];
    const std::array<double, 2>& b = id_vector_[pair.b][row.ids[pair.b]];
    pairs += a[0] * b[0] + a[1] * b[1];
  }
  double slopes = 0;
  for (const DensePair& pair : kDensePairs) {
    slopes += row.dense[pair.d] * id_slope_[pair.j][row.ids[pair.j]];
  }
  return -1.5 + 0.15 * dense + ids + pairs / std::sqrt(8.0) + 0.3 * slopes;
}

ClickModel::Row ClickModel::At(uint64_t seed, int64_t row) const {
  constexpr double kExponents[kTables] = {0.6,  0.7,  0.8, 0.9,
                                          1.05, 1.05, 1.1, 1.15};
  Row result;
  for (int d = 0; d < kDense; ++d) result.dense[d] = NormalAt(seed, row, d);
  for (int j = 0; j < kTables; ++j) {
    result.ids[j] = PowerLawId(UniformAt(seed, row, kIdStream + j),
                               kTableSizes[j], kExponents[j]);
  }
  result.probability = 1 / (1 + std::exp(-Logit(result)));
  result.click = UniformAt(seed, row, kClickStream) < result.probability;
  return result;
}

LinearModel::LinearModel() {
  for (int j = 0; j < kInputs; ++j) weight_[j] = NormalAt(kLinearTeacher, j, 0);
}

LinearModel::Row LinearModel::At(uint64_t seed, int64_t row) const {
  Row result;
  double dot = 0;
  for (int j = 0; j < kInputs; ++j) {
    result.x[j] = NormalAt(seed, row, j);
    dot += result.x[j] * weight_[j];
  }
  result.mean = dot / std::sqrt(double(kInputs)) + 0.3;
  result.y = result.mean + 0.5 * NormalAt(seed, row, kNoiseStream);
  return result;
}

MlpTeacherModel::MlpTeacherModel() {
  for (int m = 0; m < kHidden; ++m) {
    for (int j = 0; j < kInputs; ++j) {
      weight_[m][j] = NormalAt(kMlpTeacher, m, j) / 4;
    }
    bias_[m] = NormalAt(kMlpTeacher, m, 1000);
    output_[m] = NormalAt(kMlpTeacher, m, 1001) / std::sqrt(double(kHidden));
  }
}

MlpTeacherModel::Row MlpTeacherModel::At(uint64_t seed, int64_t row) const {
  Row result;
  for (int j = 0; j < kInputs; ++j) result.x[j] = NormalAt(seed, row, j);
  result.mean = 0;
  for (int m = 0; m < kHidden; ++m) {
    double dot = 0;
    for (int j = 0; j < kInputs; ++j) dot += weight_[m][j] * result.x[j];
    result.mean += output_[m] * std::tanh(2 * dot + 0.5 * bias_[m]);
  }
  result.y = result.mean + 0.1 * NormalAt(seed, row, kNoiseStream);
  return result;
}

MarkovModel::MarkovModel() : probability_(kTokens * kTokens) {
  for (int context = 0; context < kTokens * kTokens; ++context) {
    double sum = 0;
    for (int k = 0; k < kTokens; ++k) {
      const double weight =
          std::exp(1.5 * NormalAt(kMarkovTeacher, context, k));
      probability_[context][k] = weight;
      sum += weight;
    }
    for (double& p : probability_[context]) p /= sum;
  }
}

std::vector<uint8_t> MarkovModel::Stream(uint64_t seed, int64_t count) const {
  std::vector<uint8_t> tokens(count);
  int context = 0;  // 16 * the second-to-last token + the last token
  for (int64_t t = 0; t < count; ++t) {
    const double u = UniformAt(seed, t, 0);
    double cumulative = 0;
    int token = 0;
    for (; token < kTokens - 1; ++token) {
      cumulative += probability_[context][token];
      if (u < cumulative) break;
    }
    tokens[t] = static_cast<uint8_t>(token);
    context = (context * kTokens + token) % (kTokens * kTokens);
  }
  return tokens;
}

}  // namespace tributary
