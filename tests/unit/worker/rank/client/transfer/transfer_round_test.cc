// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/transfer/transfer_round.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/status_matchers.h"
#include "worker/rank/client/transfer/transfer.h"

namespace tributary {
namespace {

using testing::StatusIs;

// Calls that end when the test answers them or they are cancelled.
class HeldCalls final : public CallQueue {
 public:
  std::unique_ptr<Call> Start(int server, const char* /*method*/,
                              const grpc::ByteBuffer& /*request*/,
                              absl::Duration /*timeout*/,
                              CompletionTag* tag) override {
    auto call = std::make_unique<HeldCall>(this, tag);
    absl::MutexLock lock(&mu_);
    servers_.insert(server);
    held_.push_back(call.get());
    driver_ = std::this_thread::get_id();
    return call;
  }
  std::unique_ptr<Alarm> SetAlarm(absl::Duration /*pause*/,
                                  CompletionTag* tag) override {
    absl::MutexLock lock(&mu_);
    tags_.push_back(tag);
    return std::make_unique<PastAlarm>();
  }
  Next HandleNext(absl::Duration timeout) override {
    CompletionTag* tag = nullptr;
    {
      absl::MutexLock lock(&mu_);
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return !tags_.empty() || shut_down_;
      };
      if (timeout <= absl::ZeroDuration() && !ready()) return Next::kTimeout;
      mu_.Await(absl::Condition(&ready));
      if (tags_.empty()) return Next::kShutdown;
      tag = tags_.front();
      tags_.pop_front();
    }
    tag->Proceed(true);
    return Next::kHandled;
  }
  void Shutdown() override {
    absl::MutexLock lock(&mu_);
    shut_down_ = true;
  }
  absl::StatusOr<grpc::ByteBuffer> CallAndWait(int, const char*,
                                               const grpc::ByteBuffer&,
                                               absl::Duration) override {
    return absl::UnimplementedError("not used here");
  }

  // Waits for a call and ends it.
  void EndOne(const absl::Status& status) {
    absl::MutexLock lock(&mu_);
    const auto held = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return !held_.empty();
    };
    mu_.Await(absl::Condition(&held));
    HeldCall* const first = held_.front();
    held_.pop_front();
    EndLocked(first, status);
  }
  std::set<int> servers() {
    absl::MutexLock lock(&mu_);
    return servers_;
  }
  // The thread that made the last call.
  std::thread::id driver() {
    absl::MutexLock lock(&mu_);
    return driver_;
  }

 private:
  struct PastAlarm final : Alarm {
    void Cancel() override {}
  };
  class HeldCall final : public Call {
   public:
    HeldCall(HeldCalls* queue, CompletionTag* tag) : queue_(queue), tag_(tag) {}
    void Cancel() override {
      absl::MutexLock lock(&queue_->mu_);
      std::erase(queue_->held_, this);
      queue_->EndLocked(this, absl::CancelledError("cancelled"));
    }
    absl::StatusOr<grpc::ByteBuffer> TakeAnswer() override {
      absl::MutexLock lock(&queue_->mu_);
      if (status_.ok()) return grpc::ByteBuffer();
      return Copy(status_);
    }

   private:
    // The library that counts a status' references is not watched for races, so
    // no two threads share one.
    static absl::Status Copy(const absl::Status& status) {
      return absl::Status(status.code(), status.message());
    }

    friend class HeldCalls;
    HeldCalls* const queue_;
    CompletionTag* const tag_;
    bool ended_ = false;  // the queue's lock guards these two
    absl::Status status_;
  };

  void EndLocked(HeldCall* call, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (std::exchange(call->ended_, true)) return;
    call->status_ = HeldCall::Copy(status);
    tags_.push_back(call->tag_);
  }

  absl::Mutex mu_;
  std::deque<CompletionTag*> tags_ ABSL_GUARDED_BY(mu_);
  std::deque<HeldCall*> held_ ABSL_GUARDED_BY(mu_);
  std::set<int> servers_ ABSL_GUARDED_BY(mu_);
  std::thread::id driver_ ABSL_GUARDED_BY(mu_);
  bool shut_down_ ABSL_GUARDED_BY(mu_) = false;
};

// A round with two lanes.
class TwoLanesTest : public ::testing::Test {
 protected:
  TwoLanesTest() {
    TransferRound::Options options;
    for (HeldCalls*& lane : lanes_) {
      auto calls = std::make_unique<HeldCalls>();
      lane = calls.get();
      options.calls.push_back(std::move(calls));
    }
    round_ = std::make_unique<TransferRound>(std::move(options));
    round_->Begin(absl::Minutes(10));
  }

  void Push(int shard) {
    Transfer::Start(
        round_.get(),
        {.method = "/push",
         .what = absl::StrCat("push to ", shard),
         .request = [](uint32_t /*wait_ms*/) { return grpc::ByteBuffer(); },
         .receive = [](const grpc::ByteBuffer&) { return absl::OkStatus(); },
         .shard = shard});
  }

  HeldCalls* lanes_[2] = {};  // round_ owns them
  std::unique_ptr<TransferRound> round_;
};

TEST_F(TwoLanesTest, EachDrivesItsServersOnAThreadOfItsOwn) {
  for (int shard = 0; shard < 5; ++shard) Push(shard);
  for (int i = 0; i < 3; ++i) lanes_[0]->EndOne(absl::OkStatus());
  for (int i = 0; i < 2; ++i) lanes_[1]->EndOne(absl::OkStatus());
  TRIBUTARY_EXPECT_OK(round_->Wait());
  EXPECT_EQ(lanes_[0]->servers(), (std::set<int>{0, 2, 4}));
  EXPECT_EQ(lanes_[1]->servers(), (std::set<int>{1, 3}));
  EXPECT_NE(lanes_[0]->driver(), lanes_[1]->driver());
  EXPECT_NE(lanes_[0]->driver(), std::this_thread::get_id());
}

// Without it the round would wait for the other lane's calls, which never end.
TEST_F(TwoLanesTest, AnErrorInOneEndsTheCallsOfBoth) {
  Push(0);
  Push(1);
  Push(3);
  lanes_[0]->EndOne(absl::InvalidArgumentError("no such block"));
  EXPECT_THAT(round_->Wait(), StatusIs(absl::StatusCode::kInvalidArgument,
                                       "push to 0: no such block"));
}

TEST_F(TwoLanesTest, ARoundIsOverWhenBothAre) {
  Push(0);
  Push(1);
  lanes_[1]->EndOne(absl::OkStatus());
  std::thread other([this] { lanes_[0]->EndOne(absl::OkStatus()); });
  TRIBUTARY_EXPECT_OK(round_->Wait());
  other.join();
  round_->Begin(absl::Minutes(10));
  Push(1);
  round_->Cancel("enough");
  EXPECT_THAT(round_->Wait(), StatusIs(absl::StatusCode::kCancelled, "enough"));
}

}  // namespace
}  // namespace tributary
