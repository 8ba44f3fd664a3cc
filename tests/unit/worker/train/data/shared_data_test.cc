// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/shared_data.h"

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/worker/train/data/data_files.h"

namespace tributary {
namespace {

v1::DataSpec Tokens(const std::string& path) {
  v1::DataSpec spec;
  v1::TextSource* text = spec.mutable_train()->mutable_text();
  text->add_path(path);
  text->set_length(4);
  return spec;
}

TEST(SharedDataTest, RanksThatComeAtOnceGetTheSameData) {
  const v1::DataSpec spec = Tokens(WriteFile("a_text", "to be or not to be"));
  SharedData shared;
  std::vector<std::shared_ptr<const TrainTest>> got(4);
  std::vector<std::thread> ranks;
  for (auto& data : got) {
    ranks.emplace_back([&] {
      auto opened = shared.Open(spec, TargetKind::kClass);
      ASSERT_TRUE(opened.ok()) << opened.status();
      data = *std::move(opened);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const auto& data : got) {
    EXPECT_EQ(data, got[0]);
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(data->train->rows(), 4);
  }
}

TEST(SharedDataTest, WhatCouldNotBeReadIsReadAgain) {
  const std::string path = WriteFile("comes_later", "to be or not to be");
  std::filesystem::rename(path, path + ".away");
  SharedData shared;
  EXPECT_FALSE(shared.Open(Tokens(path), TargetKind::kClass).ok());
  std::filesystem::rename(path + ".away", path);
  const auto data = shared.Open(Tokens(path), TargetKind::kClass);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->train->rows(), 4);
}

}  // namespace
}  // namespace tributary
