// SPDX-License-Identifier: Apache-2.0
#include "server/service/calls/unread_answers.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace tributary {
namespace {

class UnreadAnswersTest : public ::testing::Test {
 protected:
  std::shared_ptr<UnreadAnswers> answers_ = std::make_shared<UnreadAnswers>();
  // Two versions of a block.
  const SharedBuffer old_{25}, new_{25};
};

TEST_F(UnreadAnswersTest, AnswersCountUntilTheirSlicesAreGone) {
  std::optional<grpc::Slice> slice = answers_->Send("a", old_, 100);
  EXPECT_EQ(slice->size(), 100u);
  EXPECT_EQ(slice->begin(), reinterpret_cast<const uint8_t*>(old_.data()));
  std::optional<grpc::Slice> copy = slice;
  slice.reset();
  EXPECT_EQ(answers_->bytes(), 100u);
  EXPECT_FALSE(old_.Unique());
  copy.reset();
  EXPECT_EQ(answers_->bytes(), 0u);
  EXPECT_TRUE(old_.Unique());
}

TEST_F(UnreadAnswersTest, APeerThatReadsNothingIsGivenNoMore) {
  answers_->SetLimits({.peer_bytes = 150});
  EXPECT_TRUE(answers_->Admits("a"));
  const grpc::Slice first = answers_->Send("a", old_, 100);
  EXPECT_TRUE(answers_->Admits("a"));
  std::optional<grpc::Slice> second = answers_->Send("a", new_, 100);
  EXPECT_FALSE(answers_->Admits("a"));
  EXPECT_TRUE(answers_->Admits("b"));
  second.reset();
  EXPECT_TRUE(answers_->Admits("a"));
}

// Answers of the same memory count once; a peer with an older one adds to it.
TEST_F(UnreadAnswersTest, TogetherTheyKeepNoMoreThanTheLimit) {
  answers_->SetLimits({.peer_bytes = 1000, .bytes = 150});
  const grpc::Slice a = answers_->Send("a", new_, 100);
  const grpc::Slice b = answers_->Send("b", new_, 100);
  EXPECT_EQ(answers_->bytes(), 100u);
  EXPECT_TRUE(answers_->Admits("a"));
  std::optional<grpc::Slice> c = answers_->Send("c", old_, 100);
  EXPECT_EQ(answers_->bytes(), 200u);
  EXPECT_FALSE(answers_->Admits("a"));
  EXPECT_FALSE(answers_->Admits("c"));
  EXPECT_TRUE(answers_->Admits("d")) << "it has read everything";
  c.reset();
  EXPECT_TRUE(answers_->Admits("a"));
}

TEST_F(UnreadAnswersTest, ASliceMayOutliveTheServer) {
  const grpc::Slice slice = answers_->Send("a", old_, 100);
  answers_.reset();
  EXPECT_FALSE(old_.Unique());
}

}  // namespace
}  // namespace tributary
