// SPDX-License-Identifier: Apache-2.0
// Measures how fast a server sums contributions and updates weights, compared
// with the memory's speed in the same interleaved run (docs/benchmarks.md).
// Prints for each optimizer, for 2 and 8 contributions in float32 and for each
// instruction set of this processor, the median over all rounds of
//   ms       one step of 16Mi weights on one thread, in processor time, which
//            other processes on the same cores change less than the time of day
//   GB/s     bytes that a single pass reads and writes / time: 4 for each
//            contribution, 8 for the weight and 8 for each state
//   ratio    to a[i] = q a[i] + b[i], which moves 12 bytes, measured directly
//            before and after each step
//
// usage: aggregate_bench [ROUNDS [OPTIMIZER]]
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clones.h"
#include "common/optimizer/grouped_optimizer.h"
#include "kernels/sum_and_update.h"
#include "server/store/block_state.h"
#include "server/sync/sync_policy.h"

namespace tributary {
namespace {

constexpr int64_t kWeights = 16 << 20;
constexpr int64_t kBlock = 256 << 10;  // weights in a block: 1 MiB

double ProcessorSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double SecondsOf(const auto& work) {
  const double begin = ProcessorSeconds();
  work();
  return ProcessorSeconds() - begin;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A shard's blocks and the gradients that `ranks` workers push in every step.
class Server {
 public:
  Server(const OptimizerOptions& optimizer, int ranks, const float* gradients)
      : optimizer_(optimizer), ranks_(ranks) {
    for (int64_t begin = 0; begin < kWeights; begin += kBlock) {
      const int index = static_cast<int>(plans_.size());
      plans_.push_back(std::make_unique<Block>());
      *plans_.back() = {.shard = 0,
                        .index = index,
                        .size = kBlock,
                        .slices = {{.parameter = 0,
                                    .begin = begin,
                                    .end = begin + kBlock,
                                    .offset = 0}}};
      blocks_.push_back(std::make_unique<BlockState>(
          *plans_.back(), BlockState::Options{.optimizer = &optimizer_,
                                              .policy = &policy_,
                                              .parameters = &parameters_,
                                              .num_workers = ranks}));
      absl::MutexLock lock(&blocks_.back()->mu);
      blocks_.back()->SetWeights(PayloadAt(gradients + begin), 0);
    }
  }

  // Every rank's gradient has bytes of its own, as in arrived messages.
  void Gather(const std::vector<const float*>& of_rank) {
    for (size_t b = 0; b < blocks_.size(); ++b) {
      absl::MutexLock lock(&blocks_[b]->mu);
      for (int rank = 0; rank < ranks_; ++rank) {
        Contribution c;
        c.rank = static_cast<uint32_t>(rank);
        c.incarnation = 1;
        c.step = step_;
        c.samples = 1;
        c.payload = PayloadAt(of_rank[rank] + static_cast<int64_t>(b) * kBlock);
        blocks_[b]->aggregator().Add(std::move(c));
      }
    }
  }

  void Apply(const SumAndUpdateVersion& version) {
    const OptimizerSteps step = optimizer_.Prepare(++step_, {1e-6}, 1.0);
    for (const auto& block : blocks_) {
      absl::MutexLock lock(&block->mu);
      block->ApplyFused(step, &version);
    }
  }

  double bytes() const {
    const auto states = static_cast<double>(optimizer_.state_names().size());
    return kWeights * (4.0 * ranks_ + 8 + 8 * states);
  }

 private:
  static Payload PayloadAt(const float* floats) {
    return Payload({Payload::Piece(reinterpret_cast<const char*>(floats),
                                   kBlock * sizeof(float))},
                   nullptr);
  }

  const GroupedOptimizer optimizer_;
  const int ranks_;
  const BulkSynchronous policy_;
  const ParameterSpecs parameters_ = {{"w", {kWeights}}};
  std::vector<std::unique_ptr<Block>> plans_;
  std::vector<std::unique_ptr<BlockState>> blocks_;
  int64_t step_ = 0;
};

TRIBUTARY_CLONES void ScaleAndAdd(size_t n, float* a, const float* b) {
  for (size_t i = 0; i < n; ++i) a[i] = 0.999f * a[i] + b[i];
}

// The memory's speed in bytes per second.
double MemoryRate(std::vector<float>& a, const std::vector<float>& b) {
  const double seconds =
      SecondsOf([&] { ScaleAndAdd(a.size(), a.data(), b.data()); });
  return 12.0 * static_cast<double>(a.size()) / seconds;
}

std::vector<OptimizerOptions> Optimizers() {
  std::vector<OptimizerOptions> all;
  for (const OptimizerKind& kind : AllOptimizerKinds()) {
    if (kind.makes_direction || kind.factored) continue;  // several passes
    all.emplace_back().kind = kind.name;
  }
  all.emplace_back().momentum = 0.9;  // sgd
  return all;
}

// The measurements of one row of the table, which prints their medians.
struct Row {
  double bytes = 0;
  std::vector<double> seconds, ratios;
};

struct Memory {
  std::vector<float> a = std::vector<float>(kWeights, 1);
  std::vector<float> b = std::vector<float>(kWeights, 1e-3f);
  std::vector<std::vector<float>> gradients =
      std::vector<std::vector<float>>(8, std::vector<float>(kWeights, 1e-3f));
};

// Measures every version once.
void Measure(const OptimizerOptions& optimizer, int ranks, Memory& memory,
             std::map<std::string, Row>* rows) {
  std::vector<const float*> of_rank;
  for (const auto& gradient : memory.gradients) {
    of_rank.push_back(gradient.data());
  }
  Server server(optimizer, ranks, of_rank[0]);
  server.Gather(of_rank);
  server.Apply(BestSumAndUpdateVersion());  // touches all memory
  for (const SumAndUpdateVersion& version : SupportedSumAndUpdateVersions()) {
    server.Gather(of_rank);
    const double before = MemoryRate(memory.a, memory.b);
    const double took = SecondsOf([&] { server.Apply(version); });
    const double after = MemoryRate(memory.a, memory.b);
    const std::string title = absl::StrCat(
        optimizer.kind, optimizer.momentum > 0 ? " with momentum" : "", " | ",
        ranks, " | ", version.name);
    Row& row = (*rows)[title];
    row.bytes = server.bytes();
    row.seconds.push_back(took);
    row.ratios.push_back(server.bytes() / took / ((before + after) / 2));
  }
}

int Main(int rounds, const std::string& only) {
  Memory memory;
  std::map<std::string, Row> rows;
  for (int round = 0; round < rounds; ++round) {
    for (const OptimizerOptions& optimizer : Optimizers()) {
      if (!only.empty() && optimizer.kind != only) continue;
      for (const int ranks : {2, 8}) Measure(optimizer, ranks, memory, &rows);
    }
  }
  std::printf(
      "| optimizer | contributions | instructions | ms | GB/s | ratio |\n"
      "| --- | --- | --- | --- | --- | --- |\n");
  for (const auto& [title, row] : rows) {
    const double took = Median(row.seconds);
    std::printf("| %s | %.1f | %.1f | %.2f |\n", title.c_str(), 1e3 * took,
                1e-9 * row.bytes / took, Median(row.ratios));
  }
  return 0;
}

}  // namespace
}  // namespace tributary

int main(int argc, char** argv) {
  return tributary::Main(argc > 1 ? std::atoi(argv[1]) : 7,
                         argc > 2 ? argv[2] : "");
}
