// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "kernels/device.h"
#include "kernels/nccl_api.h"
#include "kernels/ops.h"
#include "tests/testing/nccl/fake_nccl.h"
#include "tests/testing/nccl/host_arrays.h"
#include "worker/rank/collective/mesh.h"
#include "worker/rank/collective/nccl_communicator.h"
#include "worker/rank/collective/peer_communicator.h"
#include "worker/rank/collective/staged_communicator.h"

namespace tributary {

// Returns when every rank has called it.
inline absl::Status Meet(Communicator& group) {
  float one = 1;
  return group.AllReduce(&one, 1);
}

// The messages that ranks exchange before they are connected.
class RankExchange {
 public:
  explicit RankExchange(int size) : bytes_(size), missing_(size) {}
  absl::StatusOr<std::vector<std::string>> operator()(int rank,
                                                      std::string bytes) {
    absl::MutexLock lock(&mu_);
    bytes_[rank] = std::move(bytes);
    --missing_;
    const auto complete = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return missing_ == 0;
    };
    mu_.Await(absl::Condition(&complete));
    return bytes_;
  }

 private:
  absl::Mutex mu_;
  std::vector<std::string> bytes_ ABSL_GUARDED_BY(mu_);
  int missing_ ABSL_GUARDED_BY(mu_);
};

// A group of ranks, each a thread, over the transport that the parameter names:
// threads of one process, Gloo on the loopback, copies of a device's arrays,
// and NCCL: a fake one whose ranks are threads, and the real one where there is
// a device for each rank.
class CommunicatorTest : public ::testing::TestWithParam<std::string> {
 protected:
  using Body = std::function<void(int rank, Communicator& group)>;

  bool nccl() const { return GetParam().substr(0, 4) == "nccl"; }

  ExchangeBytes ExchangeOf(int rank) {
    return [this, rank](std::string bytes) {
      return exchanges_[0](rank, std::move(bytes));
    };
  }

  // One exchange for each rank that gets a part.
  ExchangeParts ExchangePartsOf(int rank) {
    return [this, rank](const std::string& bytes,
                        const std::vector<std::string>& parts) {
      std::vector<std::string> mine;
      for (size_t to = 0; to < parts.size(); ++to) {
        auto all = exchanges_[to](rank, bytes + parts[to]);
        if (static_cast<int>(to) == rank) mine = *std::move(all);
      }
      return absl::StatusOr<std::vector<std::string>>(std::move(mine));
    };
  }

  std::unique_ptr<Mesh> Connect(int rank, int size) {
    if (GetParam() != "gloo") return std::move(sides_[rank]);
    absl::StatusOr<std::unique_ptr<Mesh>> mesh =
        ConnectGlooMesh({.rank = rank,
                         .size = size,
                         .host = "127.0.0.1",
                         .exchange = ExchangePartsOf(rank)});
    EXPECT_TRUE(mesh.ok()) << mesh.status();
    return *std::move(mesh);
  }

  std::unique_ptr<Communicator> MakeNccl(int rank, int size, Ops* ops,
                                         absl::Duration timeout) {
    NcclCommunicator::Options options;
    options.ops = ops;
    std::string why;
    options.api = GetParam() == "nccl"
                      ? fake_.Open("device " + std::to_string(rank))
                      : OpenNccl(ops, &why);
    EXPECT_NE(options.api, nullptr) << why;
    options.mesh = Connect(rank, size);
    options.exchange = ExchangeOf(rank);
    options.messages = true;
    options.timeouts.call = timeout;
    options.timeouts.leave = absl::Milliseconds(20);
    options.timeouts.explain = options.timeouts.skew = absl::Milliseconds(300);
    options.ranks = job_ranks_;
    auto made = NcclCommunicator::Connect(std::move(options));
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }

  // Uses small pieces, so that every call has several.
  std::unique_ptr<Communicator> Make(int rank, int size, Ops* ops,
                                     absl::Duration timeout) {
    if (GetParam() == "nccl") return MakeNccl(rank, size, ops, timeout);
    if (GetParam() == "nccl-device") {
      return std::make_unique<testing::HostArrays>(
          ops, MakeNccl(rank, size, ops, timeout));
    }
    const bool staged = GetParam() == "staged";
    auto peer = std::make_unique<PeerCommunicator>(
        PeerCommunicator::Options{.mesh = Connect(rank, size),
                                  .ops = staged ? host_ops_.get() : ops,
                                  .timeout = timeout,
                                  .piece_elements = 48,
                                  .small_elements = 64,
                                  .ranks = job_ranks_});
    if (!staged) return peer;
    return std::make_unique<StagedCommunicator>(
        StagedCommunicator::Options{.host = std::move(peer), .ops = ops});
  }

  // Runs `body` for each rank on a thread of its own.
  void Run(int size, const Body& body,
           absl::Duration timeout = absl::Seconds(20)) {
    sides_ = CreateInProcessMesh(size);
    exchanges_.clear();
    for (int rank = 0; rank < size; ++rank) exchanges_.emplace_back(size);
    std::vector<std::unique_ptr<Ops>> ops;
    for (int rank = 0; rank < size; ++rank) {
      std::string why;
      ops.push_back(GetParam() == "nccl-device" ? CreateCudaOps(&why, rank)
                                                : CreateCpuOps());
      if (ops.back() == nullptr) GTEST_SKIP() << "no device: " << why;
      if (GetParam() != "nccl-device") continue;
      const auto api = OpenNccl(ops.back().get(), &why);
      if (api == nullptr) GTEST_SKIP() << why;
      if (!devices_.insert(api->device_id()).second) {
        devices_.clear();
        GTEST_SKIP() << "fewer devices than ranks, " << size;
      }
    }
    devices_.clear();
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        const std::unique_ptr<Communicator> group =
            Make(rank, size, ops[rank].get(), timeout);
        EXPECT_EQ(group->backend(), GetParam() == "staged" ? "in-process"
                                    : nccl()               ? "nccl"
                                                           : GetParam());
        body(rank, *group);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<int> job_ranks_;

 private:
  std::vector<std::unique_ptr<Mesh>> sides_;
  std::deque<RankExchange> exchanges_;
  std::set<std::string> devices_;
  testing::FakeNccl fake_;
  const std::unique_ptr<Ops> host_ops_ = CreateCpuOps();
};

}  // namespace tributary
