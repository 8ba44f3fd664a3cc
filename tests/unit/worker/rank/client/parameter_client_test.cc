// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/parameter_client.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/wire/crc32c/crc32c.h"
#include "common/wire/header_checksum.h"
#include "tests/testing/status_matchers.h"
#include "tributary/v1/parameter_service.grpc.pb.h"

namespace tributary {
namespace {

using testing::StatusIs;

// Answers with weights {1, 2, 3} of version 7. After Damage(), the next answers
// are damaged, or end as something between client and server may end a call.
class DamagingService final : public v1::ParameterService::Service {
 public:
  static constexpr int kWays = 8;
  static constexpr int64_t kSkippedStep = 11;
  void Damage() { left_ = kWays; }
  int left() const { return left_; }
  // In step kSkippedStep, blocks up to this one are skipped and later ones are
  // not.
  void SkipOnly(uint32_t last_block) { last_skipped_ = last_block; }

  grpc::Status Pull(grpc::ServerContext*, const v1::PullRequest* request,
                    v1::PullResponse* response) override {
    if (!CheckHeader(*request).ok()) headers_ok_ = false;
    return Answer(response);
  }
  grpc::Status PushPull(grpc::ServerContext*,
                        const v1::PushPullRequest* request,
                        v1::PushPullResponse* response) override {
    if (!CheckHeader(*request).ok()) headers_ok_ = false;
    announced_ = request->total_samples();
    {
      absl::MutexLock lock(&mu_);
      pushed_.push_back(request->payload());
      learning_rates_.assign(request->learning_rates().begin(),
                             request->learning_rates().end());
      held_ = true;
      mu_.Await(absl::Condition(&released_));
    }
    response->set_skipped(request->step() == kSkippedStep &&
                          request->address().block() <= last_skipped_);
    return Answer(response);
  }
  grpc::Status Initialize(grpc::ServerContext*,
                          const v1::InitializeRequest* request,
                          v1::InitializeResponse*) override {
    if (!CheckHeader(*request).ok()) headers_ok_ = false;
    return grpc::Status::OK;
  }
  grpc::Status ReadClock(grpc::ServerContext*, const v1::ClockRequest* request,
                         v1::ClockResponse* response) override {
    if (!CheckHeader(*request).ok()) headers_ok_ = false;
    response->set_initialized(true);
    response->set_steps(4);
    response->set_begun(4);
    SignHeader(response);
    if (left_ > 0 && left_-- > 1) response->set_steps(5);
    return grpc::Status::OK;
  }
  bool headers_ok() const { return headers_ok_; }
  // The total of samples in the last push.
  uint64_t announced() const { return announced_; }

  // The payload of every push so far.
  std::vector<std::string> pushed() const {
    absl::MutexLock lock(&mu_);
    return pushed_;
  }

  // The learning rates of the last push.
  std::vector<double> learning_rates() const {
    absl::MutexLock lock(&mu_);
    return learning_rates_;
  }

  // Pushes are held until Release.
  void Hold() {
    absl::MutexLock lock(&mu_);
    released_ = false;
  }
  void AwaitHeld() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&held_));
  }
  void Release() {
    absl::MutexLock lock(&mu_);
    released_ = true;
  }

 private:
  template <typename Response>
  grpc::Status Answer(Response* response) {
    const std::vector<float> weights = {1, 2, 3};
    response->set_version(7);
    response->set_payload(weights.data(), 12);
    response->set_crc32c(Crc32c(weights.data(), 12));
    SignHeader(response);
    if (left_ == 0) return grpc::Status::OK;
    switch (--left_) {
      case 0:
        response->set_version(6);
        break;
      case 1:
        (*response->mutable_payload())[2] ^= 1;
        break;
      case 2:
        response->clear_payload();
        break;
      case 3:
        response->set_header_crc32c(0);
        break;
      case 4:
        return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "no room");
      case 5:
        return grpc::Status(grpc::StatusCode::CANCELLED, "reset");
      case 6:
        return grpc::Status(grpc::StatusCode::INTERNAL, "reset");
      default:
        return grpc::Status(grpc::StatusCode::UNKNOWN, "reset");
    }
    return grpc::Status::OK;
  }

  std::atomic<int> left_{0};
  std::atomic<bool> headers_ok_{true};
  std::atomic<uint64_t> announced_{0};
  std::atomic<uint32_t> last_skipped_{UINT32_MAX};
  mutable absl::Mutex mu_;
  std::vector<std::string> pushed_ ABSL_GUARDED_BY(mu_);
  std::vector<double> learning_rates_ ABSL_GUARDED_BY(mu_);
  bool held_ ABSL_GUARDED_BY(mu_) = false;
  bool released_ ABSL_GUARDED_BY(mu_) = true;
};

// The parameter: whether the client has a network thread.
class ParameterClientTest : public ::testing::TestWithParam<bool> {
 protected:
  ParameterClientTest() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ParameterClient::Options& options = options_;
    options.plan.set_job_id(77);
    options.plan.set_epoch(1);
    options.plan.set_num_workers(1);
    options.plan.set_bucket_bytes(1 << 16);
    options.plan.add_servers(absl::StrCat("127.0.0.1:", port));
    v1::ParameterSpec& spec = *options.plan.add_parameters();
    spec.set_name("w");
    spec.add_shape(3);
    options.step_timeout = absl::Seconds(60);
    options.for_tests.thread_from_bytes =
        GetParam() ? 0 : 13;  // three floats have 12
    client_ = ParameterClient::Connect(options).value();
  }

  DamagingService service_;
  std::unique_ptr<grpc::Server> server_;
  ParameterClient::Options options_;  // of client_
  std::unique_ptr<ParameterClient> client_;
  std::vector<float> weights_ = std::vector<float>(3);
};

TEST_P(ParameterClientTest, WhatComesDamagedIsAskedForAgain) {
  float* const weights[] = {weights_.data()};
  service_.Damage();
  TRIBUTARY_ASSERT_OK(client_->Pull({}, weights));
  EXPECT_EQ(client_->traffic().retries, uint64_t{DamagingService::kWays});
  EXPECT_EQ(client_->newest_version(), 7);
  EXPECT_EQ(weights_, (std::vector<float>{1, 2, 3}));

  service_.Damage();
  weights_ = {0, 0, 0};
  const std::vector<float> gradient = {1, 1, 1};
  const float* const gradients[] = {gradient.data()};
  client_->BeginStep(3, 2, gradients, weights);
  client_->PushPull(client_->partition().blocks(0)[0]);
  TRIBUTARY_ASSERT_OK(client_->FinishStep());
  EXPECT_EQ(client_->traffic().retries, 2u * DamagingService::kWays);
  EXPECT_EQ(client_->newest_version(), 7);
  EXPECT_EQ(weights_, (std::vector<float>{1, 2, 3}));
  EXPECT_TRUE(service_.headers_ok());
}

TEST_P(ParameterClientTest, ADamagedClockIsReadAgain) {
  service_.Damage();
  const auto clock = client_->ReadProgress();
  TRIBUTARY_ASSERT_OK(clock);
  EXPECT_EQ(clock->steps, 4);
  EXPECT_EQ(service_.left(), 0);
  EXPECT_TRUE(service_.headers_ok());
}

TEST_P(ParameterClientTest, InitialWeightsCarryAHeaderChecksum) {
  const float* const tensors[] = {weights_.data()};
  TRIBUTARY_ASSERT_OK(client_->Initialize(tensors));
  EXPECT_TRUE(service_.headers_ok());
}

// Each of the two tensor ranks that hold the block contributes the samples of
// its replica.
TEST_P(ParameterClientTest, APushAnnouncesTheSamplesOfAllThatHoldTheBlock) {
  float* const weights[] = {weights_.data()};
  const float* const gradients[] = {weights_.data()};
  const auto push = [&](ParameterClient& client) {
    client.BeginStep(3, 2, gradients, weights);
    client.PushPull(client.partition().blocks(0)[0]);
    TRIBUTARY_EXPECT_OK(client.FinishStep());
    return service_.announced();
  };
  EXPECT_EQ(push(*client_), 0u);
  options_.total_samples = [](int64_t step) {
    return static_cast<uint64_t>(10 * step);
  };
  EXPECT_EQ(push(*ParameterClient::Connect(options_).value()), 30u);
  options_.plan.set_num_workers(2);
  options_.plan.mutable_mesh()->set_data(1);
  options_.plan.mutable_mesh()->set_stages(1);
  options_.plan.mutable_mesh()->set_tensor(2);
  EXPECT_EQ(push(*ParameterClient::Connect(options_).value()), 60u);
  EXPECT_TRUE(service_.headers_ok());
}

TEST_P(ParameterClientTest, APushCarriesTheRatesOfItsStepAlone) {
  float* const weights[] = {weights_.data()};
  const float* const gradients[] = {weights_.data()};
  const auto push = [&](std::vector<double> rates) {
    client_->BeginStep(3, 2, gradients, weights, rates);
    rates.assign(rates.size(), 7);  // the client keeps its own
    client_->PushPull(client_->partition().blocks(0)[0]);
    TRIBUTARY_EXPECT_OK(client_->FinishStep());
    return service_.learning_rates();
  };
  EXPECT_EQ(push({0.1, 0}), (std::vector<double>{0.1, 0}));
  EXPECT_EQ(push({}), std::vector<double>());
  EXPECT_TRUE(service_.headers_ok());
}

TEST_P(ParameterClientTest, ASkippedStepIsTold) {
  float* const weights[] = {weights_.data()};
  const float* const gradients[] = {weights_.data()};
  const auto skips = [&](int64_t step) {
    client_->BeginStep(step, 2, gradients, weights);
    client_->PushPull(client_->partition().blocks(0)[0]);
    TRIBUTARY_EXPECT_OK(client_->FinishStep());
    return client_->skipped();
  };
  EXPECT_FALSE(client_->skipped());
  EXPECT_FALSE(skips(3));
  EXPECT_TRUE(skips(DamagingService::kSkippedStep));
  EXPECT_FALSE(skips(4));
}

// A block that was not skipped may come from a server that is ahead.
TEST_P(ParameterClientTest, AStepThatChangedOneBlockIsNotSkipped) {
  v1::ParameterSpec& spec = *options_.plan.add_parameters();
  spec.set_name("v");
  spec.add_shape(3);
  spec.set_stage(1);
  const auto client = ParameterClient::Connect(options_).value();
  ASSERT_EQ(client->partition().blocks(0).size(), 2u);
  std::vector<float> other(3);
  float* const weights[] = {weights_.data(), other.data()};
  const float* const gradients[] = {weights_.data(), other.data()};
  service_.SkipOnly(0);
  client->BeginStep(DamagingService::kSkippedStep, 2, gradients, weights);
  for (const Block& block : client->partition().blocks(0)) {
    client->PushPull(block);
  }
  TRIBUTARY_ASSERT_OK(client->FinishStep());
  EXPECT_FALSE(client->skipped());
}

// By hand, with int8: 1.27 is the scale times 127, so the scale is 0.01. Of
// 0.304 a step sends 0.30 and keeps 0.004; with that, the next one sends 0.31.
TEST_P(ParameterClientTest, ARepeatedPushIsEncodedOnceWithItsResidual) {
  options_.plan.set_wire(v1::WIRE_FORMAT_INT8);
  options_.plan.set_error_feedback(true);
  const auto client = ParameterClient::Connect(options_).value();
  ASSERT_EQ(client->residuals().size(), 1u);
  float* const weights[] = {weights_.data()};
  const std::vector<float> gradient = {1.27f, 0.304f, 0};
  const float* const gradients[] = {gradient.data()};
  const auto push = [&](int64_t step, uint64_t samples) {
    client->BeginStep(step, samples, gradients, weights);
    client->PushPull(client->partition().blocks(0)[0]);
    TRIBUTARY_EXPECT_OK(client->FinishStep());
  };
  service_.Damage();
  push(3, 2);
  EXPECT_EQ(client->traffic().retries, uint64_t{DamagingService::kWays});
  const std::vector<std::string> pushed = service_.pushed();
  ASSERT_GT(pushed.size(), 1u);
  for (const std::string& payload : pushed) {
    EXPECT_EQ(payload, pushed[0]);
    EXPECT_EQ(payload.substr(4), std::string("\x7f\x1e\x00", 3));
  }
  EXPECT_NEAR(client->residuals()[0][1], 0.004f, 1e-6);
  push(4, 0);  // nothing is sent
  EXPECT_EQ(service_.pushed().back(), "");
  EXPECT_NEAR(client->residuals()[0][1], 0.004f, 1e-6);
  push(5, 2);
  EXPECT_EQ(service_.pushed().back().substr(4), std::string("\x7f\x1f\x00", 3));
  EXPECT_NEAR(client->residuals()[0][1], -0.002f, 1e-6);
}

// A call that nobody answers ends when the client is told to give up.
TEST_P(ParameterClientTest, CancelEndsAStepFromAnotherThread) {
  service_.Hold();
  float* const weights[] = {weights_.data()};
  const float* const gradients[] = {weights_.data()};
  client_->BeginStep(0, 1, gradients, weights);
  client_->PushPull(client_->partition().blocks(0)[0]);
  std::thread other([&] {
    service_.AwaitHeld();
    client_->Cancel("enough");
    service_.Release();
  });
  EXPECT_THAT(client_->FinishStep(),
              StatusIs(absl::StatusCode::kCancelled, "enough"));
  other.join();
}

INSTANTIATE_TEST_SUITE_P(Drivers, ParameterClientTest, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& info) {
                           return info.param ? "OwnThread" : "Caller";
                         });

}  // namespace
}  // namespace tributary
