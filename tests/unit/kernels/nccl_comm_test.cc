// SPDX-License-Identifier: Apache-2.0
// How calls end, by a clock that each pause between looks advances by 1 s.
#include "kernels/nccl_comm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "common/base/clock.h"
#include "tests/testing/nccl/fake_nccl.h"

namespace tributary {
namespace {

using ::testing::Each;
using testing::FakeNccl;
using ::testing::HasSubstr;
using Code = NcclOutcome::Code;

class NcclCommTest : public ::testing::Test {
 protected:
  // Connects rank 0 of a group. The other ranks are connected, and do nothing.
  void Connect(int size, FakeNccl::Behaviour behaviour = {}) {
    api_ = fake_.Open("0", behaviour);
    NcclId id;
    api_->NewId(&id);
    for (int rank = 1; rank < size; ++rank) {
      others_.push_back(fake_.Open(std::to_string(rank)));
      NcclApi::Comm comm = nullptr;
      others_.back()->Connect(size, id, rank, &comm);
      comms_.push_back(comm);
    }
    comm_ = NcclComm::Connect({.api = api_.get(),
                               .rank = 0,
                               .size = size,
                               .id = id,
                               .timeout_micros = 10'000'000,
                               .connect_micros = 3'000'000,
                               .close_micros = 5'000'000,
                               .give_up = [this] { return give_up_; },
                               .clock = &clock_,
                               .pause =
                                   [this] {
                                     ++looks_;
                                     clock_.AdvanceMicros(1'000'000);
                                     if (at_look_) at_look_(looks_);
                                   }},
                              &outcome_);
    looks_ = 0;
  }
  void TearDown() override {
    comm_.reset();
    EXPECT_EQ(fake_.live_streams(), 0);
    EXPECT_EQ(fake_.live_events(), 0);
    for (size_t i = 0; i < comms_.size(); ++i) others_[i]->Abort(comms_[i]);
  }

  FakeNccl fake_;
  ManualClock clock_;
  std::unique_ptr<NcclApi> api_;
  std::vector<std::unique_ptr<NcclApi>> others_;
  std::vector<NcclApi::Comm> comms_;
  std::unique_ptr<NcclComm> comm_;
  NcclOutcome outcome_;
  bool give_up_ = false;
  int looks_ = 0;
  std::function<void(int)> at_look_;
};

TEST_F(NcclCommTest, OneRankAloneKeepsWhatItHas) {
  Connect(1);
  ASSERT_TRUE(outcome_.ok()) << outcome_.message;
  std::vector<float> data(7, 3.0f);
  EXPECT_TRUE(comm_->AllReduce(data.data(), 7).ok());
  EXPECT_TRUE(comm_->ReduceScatter(data.data(), {0, 7}).ok());
  EXPECT_TRUE(comm_->AllGather(data.data(), {0, 7}).ok());
  EXPECT_TRUE(comm_->Broadcast(data.data(), 7, 0).ok());
  EXPECT_THAT(data, Each(3.0f));
  EXPECT_TRUE(comm_->Close().ok());
  comm_.reset();
  EXPECT_EQ(fake_.closed(), 1);
  EXPECT_EQ(fake_.aborted(), 0);
}

TEST_F(NcclCommTest, ACallThatIsNotDoneInTimeIsAborted) {
  Connect(2);
  float data = 1;
  EXPECT_EQ(comm_->AllReduce(&data, 1).code, Code::kLate);
  EXPECT_GE(looks_, 10);  // each takes one of the ten seconds
  EXPECT_LE(looks_, 12);
  EXPECT_EQ(fake_.aborted(), 1);
  // Later calls say the same at once.
  looks_ = 0;
  EXPECT_EQ(comm_->Broadcast(&data, 1, 0).code, Code::kLate);
  EXPECT_EQ(comm_->Close().code, Code::kLate);
  EXPECT_EQ(looks_, 0);
}

TEST_F(NcclCommTest, WhatTheOthersDoNotCloseIsAbortedInTime) {
  Connect(2);
  EXPECT_EQ(comm_->Close().code, Code::kLate);
  EXPECT_GE(looks_, 5);  // each takes one of the five seconds
  EXPECT_LE(looks_, 6);
  EXPECT_EQ(fake_.aborted(), 1);
}

TEST_F(NcclCommTest, AnErrorThatNcclMeetsMeanwhileEndsTheCall) {
  Connect(2);
  at_look_ = [this](int look) {
    if (look == 4) fake_.FailAsync("remote process exited");
  };
  float data = 1;
  const NcclOutcome outcome = comm_->AllReduce(&data, 1);
  EXPECT_EQ(outcome.code, Code::kFailed);
  EXPECT_THAT(outcome.message, HasSubstr("NCCL: remote process exited"));
  EXPECT_EQ(looks_, 4);
  EXPECT_EQ(fake_.aborted(), 1);
}

TEST_F(NcclCommTest, ACallThatShallBeGivenUpIsAborted) {
  Connect(2);
  at_look_ = [this](int look) { give_up_ = look == 5; };
  float data = 1;
  EXPECT_EQ(comm_->AllReduce(&data, 1).code, Code::kGivenUp);
  EXPECT_EQ(looks_, 5);
  EXPECT_EQ(fake_.aborted(), 1);
}

TEST_F(NcclCommTest, WhatIsDoneIsDoneThoughItShallBeGivenUp) {
  Connect(1, {.settles_after = 0});
  give_up_ = true;
  float data = 1;
  EXPECT_TRUE(comm_->AllReduce(&data, 1).ok());
}

// While NCCL has not put a call on the stream yet, the call is not done,
// although the stream is empty.
TEST_F(NcclCommTest, ACallIsNotDoneBeforeNcclHasTakenIt) {
  Connect(1, {.settles_after = 1000});
  float data = 1;
  EXPECT_EQ(comm_->AllReduce(&data, 1).code, Code::kLate);
}

TEST_F(NcclCommTest, ConnectingEndsInTimeAndSaysWhatFailed) {
  Connect(1, {.never_connects = true});
  EXPECT_EQ(outcome_.code, Code::kLate);
  EXPECT_EQ(clock_.NowMicros(), 3'000'000);
  EXPECT_EQ(fake_.aborted(), 1);
  Connect(1, {.fails_to_connect = true});
  EXPECT_EQ(outcome_.code, Code::kFailed);
  EXPECT_EQ(outcome_.message, "NCCL: unhandled system error");
}

TEST_F(NcclCommTest, ATransferUnderWayThatIsDroppedAbortsFirst) {
  Connect(2);
  float data = 1;
  {
    const NcclComm::Transfer sent = comm_->BeginSend(&data, 1, 1);
    EXPECT_EQ(fake_.aborted(), 0);
  }
  EXPECT_EQ(fake_.aborted(), 1);
}

TEST_F(NcclCommTest, WhoIsDroppedWithoutBeingClosedAborts) {
  Connect(1);
  comm_.reset();
  EXPECT_EQ(fake_.aborted(), 1);
  EXPECT_EQ(fake_.closed(), 0);
}

}  // namespace
}  // namespace tributary
