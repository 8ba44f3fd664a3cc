// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "coordinator/service/coordinator.h"
#include "server/service/run_server.h"
#include "worker/rank/session/program/program_session.h"

namespace tributary::testing {

// The arrays of a program with two parameters, and how it trains: its gradient
// is a function of weights, rank and step.
class TestProgram {
 public:
  explicit TestProgram(float first = 1)
      : weights_{std::vector<float>(6, first), {first, 2 * first, -first}} {}

  Session::Declaration Declare(int64_t total_steps = kOpenEnd) {
    return {.parameters = {{"0.weight", {3, 2}}, {"0.bias", {3}}},
            .weights = {weights_[0].data(), weights_[1].data()},
            .total_steps = total_steps};
  }
  // Does everything of a step except its end. Returns the result of BeginStep.
  Session::Next Push(Session& session) {
    const auto begun = session.BeginStep({});
    EXPECT_TRUE(begun.ok()) << begun.status();
    if (!begun.ok() || *begun != Session::Next::kStep) {
      return begun.value_or(Session::Next::kEnd);
    }
    for (int p = 1; p >= 0; --p) {
      for (size_t i = 0; i < weights_[p].size(); ++i) {
        session.gradient(p)[i] =
            0.25f * weights_[p][i] +
            static_cast<float>(session.rank() + session.steps() % 3);
      }
      session.GradientReady(p);
    }
    return Session::Next::kStep;
  }
  // Trains until `steps` steps are finished, through losses and rollbacks.
  void Train(Session& session, int64_t steps) {
    while (session.steps() < steps) {
      const Session::Next pushed = Push(session);
      if (pushed == Session::Next::kEnd) return;
      if (pushed == Session::Next::kMoved) continue;
      const auto next = session.FinishStep({.loss = 1});
      ASSERT_TRUE(next.ok()) << next.status();
      if (*next == Session::Next::kEnd) return;
    }
  }
  const std::vector<std::vector<float>>& weights() const { return weights_; }
  void Write(float value) { weights_[1][0] = value; }

 private:
  std::vector<std::vector<float>> weights_;
};

// The weights of two ranks after `steps` steps, by the formula. late: gradients
// are computed at the weights of one step before.
inline std::vector<std::vector<float>> Trained(int64_t steps,
                                               bool late = false) {
  std::vector<std::vector<float>> weights = TestProgram().weights();
  std::vector<std::vector<float>> before = weights;
  for (int64_t step = 0; step < steps; ++step) {
    const std::vector<std::vector<float>> now = weights;
    for (size_t p = 0; p < weights.size(); ++p) {
      for (size_t i = 0; i < weights[p].size(); ++i) {
        const float base =
            0.25f * (late ? before : now)[p][i] + static_cast<float>(step % 3);
        weights[p][i] -= 0.5f * (0.5f * (base + (base + 1)));
      }
    }
    before = now;
  }
  return weights;
}

// A coordinator and servers in this process, for a job whose ranks are
// Sessions.
class SessionTest : public ::testing::Test {
 protected:
  static v1::JobSpec Job(int servers, int workers) {
    v1::JobSpec job;
    job.set_name("program");
    job.mutable_program();
    job.set_seed(1);
    job.mutable_cluster()->set_servers(servers);
    job.mutable_cluster()->set_workers(workers);
    job.mutable_cluster()->set_lease_seconds(kLeaseSeconds);
    job.mutable_training()
        ->mutable_optimizer()
        ->mutable_sgd()
        ->set_learning_rate(0.5);
    job.mutable_training()
        ->mutable_learning_rate_schedule()
        ->mutable_constant();
    auto* server = job.mutable_strategy()->mutable_parameter_server();
    server->mutable_sync()->mutable_bsp();
    server->set_sync_timeout_seconds(30);
    return job;
  }
  ~SessionTest() override { Stop(); }

  void Stop() {
    if (coordinator_ == nullptr) return;
    coordinator_->control().WaitUntilEveryoneKnowsEnd(absl::Seconds(2));
    coordinator_.reset();
    for (std::thread& server : servers_) server.join();
    servers_.clear();
  }

  void Start(const v1::JobSpec& job) {
    Coordinator::Options options;
    options.job = job;
    options.timeouts.lease = absl::Seconds(job.cluster().lease_seconds());
    options.savers.weights = [this](const FinalWeights& weights) {
      final_ = weights.tensors;
      final_step_ = weights.step;
      return absl::OkStatus();
    };
    coordinator_ = Coordinator::Start(std::move(options)).value();
    for (int i = 0; i < job.cluster().servers(); ++i) {
      servers_.emplace_back([this] {
        (void)RunServer({.coordinator = coordinator_->address()});
      });
    }
  }
  std::unique_ptr<Session> Join(uint32_t rank) {
    auto session = ProgramSession::Create(
        {.coordinator = coordinator_->address(), .rank = rank});
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }
  // Runs `body` as the program of each rank, each on a thread.
  void RunRanks(
      int ranks,
      const std::function<void(std::unique_ptr<Session> session)>& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([this, rank, &body] {
        std::unique_ptr<Session> session = Join(static_cast<uint32_t>(rank));
        if (session != nullptr) body(std::move(session));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  static constexpr double kLeaseSeconds = 0.6;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<std::thread> servers_;
  std::vector<std::vector<float>> final_;
  int64_t final_step_ = -1;
};

}  // namespace tributary::testing
