// SPDX-License-Identifier: Apache-2.0
// Promise 1 of docs/consistency.md as users see it: the weights of a job have
// one digest, whatever the transport of its messages, their size, the
// processors' instructions and the number of servers.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/sha256.h"
#include "common/plan/plan_codec.h"
#include "tests/testing/cluster.h"

namespace tributary {
namespace {

using testing::Cluster;

struct OneDigestCase {
  std::string name;
  const char* optimizer;
  double clip_norm = 0;
  v1::WireFormat wire = v1::WIRE_FORMAT_FLOAT32;
};

// Makes the model large enough for several blocks.
Cluster::Options OptionsFor(const OneDigestCase& c) {
  Cluster::Options options;
  options.parameters = {
      {"0.weight", {300, 250}},
      {"0.bias", {300}},
      {"2.weight", {61, 300}},
      {.name = "3.running_mean", .shape = {61}, .running_momentum = 0.1}};
  options.workers = 2;
  options.optimizer.kind = c.optimizer;
  options.optimizer.learning_rate = 0.05;
  options.optimizer.weight_decay = 0.01;
  if (options.optimizer.kind == "sgd") options.optimizer.momentum = 0.9;
  options.clip_norm = c.clip_norm;
  options.wire = c.wire;
  return options;
}

class OneDigestTest : public ::testing::TestWithParam<OneDigestCase> {
 protected:
  // Trains a few steps and records the digest of the weights.
  void Train(const Cluster::Options& options) {
    Cluster cluster(options);
    const PartitionPlan plan = MakePartitionPlan(cluster.plan()).value();
    for (int s = 0; s < options.servers; ++s) {
      blocks_.insert(plan.blocks(s).size());
    }
    const auto weights =
        testing::TrainToy(cluster, 3, [](uint32_t rank, int64_t step) {
          return static_cast<uint64_t>(2 + rank + step);
        });
    std::vector<const float*> data;
    for (const auto& tensor : weights) data.push_back(tensor.data());
    digests_.insert(WeightsSha256(options.parameters, data));
    EXPECT_EQ(digests_.size(), 1u)
        << (options.shares_memory ? "shared memory, " : "gRPC, ")
        << options.bucket_bytes << " bytes a bucket, "
        << options.sum_and_update.name << ", " << options.servers << " servers";
    ++runs_;
  }

  std::set<std::string> digests_;
  std::set<size_t> blocks_;  // per server
  int runs_ = 0;
};

TEST_P(OneDigestTest, ForEveryTransportChunkSizeInstructionSetAndServers) {
  Cluster::Options options = OptionsFor(GetParam());
  const auto versions = SupportedSumAndUpdateVersions();
  for (const bool shares_memory : {false, true}) {
    for (const uint64_t bucket_bytes : {1 << 16, 1 << 18, 1 << 22}) {
      for (const SumAndUpdateVersion& version : versions) {
        for (const int servers : {1, 2, 3}) {
          options.shares_memory = shares_memory;
          options.bucket_bytes = bucket_bytes;
          options.sum_and_update = version;
          options.servers = servers;
          Train(options);
        }
      }
    }
  }
  EXPECT_GE(blocks_.size(), 3u) << "the sizes of messages do not differ";
  std::string names;
  for (const SumAndUpdateVersion& version : versions) {
    absl::StrAppend(&names, " ", version.name);
  }
  std::printf("%d runs, instruction sets%s: %s\n", runs_, names.c_str(),
              digests_.begin()->c_str());
}

// A server that clips answers only when it has every block, so the limit must
// be lifted.
TEST_P(OneDigestTest, ForEveryNumberOfUnansweredBlocks) {
  Cluster::Options options = OptionsFor(GetParam());
  options.servers = 2;
  for (const uint32_t unanswered : {0, 1, 2}) {
    options.unanswered_blocks = unanswered;
    Train(options);
  }
  EXPECT_GE(*blocks_.rbegin(), 3u) << "too few blocks to hold one back";
}

INSTANTIATE_TEST_SUITE_P(
    Cases, OneDigestTest,
    ::testing::Values(OneDigestCase{"momentum", "sgd"},
                      OneDigestCase{"adamw_clipped", "adamw", 0.5},
                      OneDigestCase{"bfloat16", "adam", 0,
                                    v1::WIRE_FORMAT_BFLOAT16}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tributary
