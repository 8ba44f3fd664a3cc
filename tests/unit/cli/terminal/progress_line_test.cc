// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/progress_line.h"

#include <gmock/gmock.h>

namespace tributary {
namespace {

ProgressView View() {
  return {.step = 713,
          .total_steps = 1875,
          .epoch = 2,
          .epochs = 5,
          .loss = 0.34119,
          .samples_per_second = 45210,
          .eta_seconds = 26};
}

TEST(ProgressLineTest, WideTerminalShowsEverything) {
  EXPECT_EQ(BarLine(View(), 100),
            "epoch 2/5 [===========>                  ]  38% 713/1875  "
            "loss 0.3412  45.2k/s  ETA 0:26");
}

TEST(ProgressLineTest, BarShrinksBeforePartsLeave) {
  const std::string full = BarLine(View(), 100);
  const std::string small = BarLine(View(), full.size() - 22);
  EXPECT_EQ(small,
            "epoch 2/5 [===>    ]  38% 713/1875  loss 0.3412  45.2k/s  "
            "ETA 0:26");
  EXPECT_EQ(BarLine(View(), small.size() - 1),
            "epoch 2/5 [======>          ]  38% 713/1875  loss 0.3412  "
            "45.2k/s");
}

TEST(ProgressLineTest, NeverWiderThanTheTerminal) {
  for (int width = 0; width <= 120; ++width) {
    const std::string line = BarLine(View(), width);
    EXPECT_LE(line.size(), static_cast<size_t>(width)) << line;
  }
}

TEST(ProgressLineTest, NarrowTerminalKeepsPercentAndStep) {
  EXPECT_EQ(BarLine(View(), 20), " 38% 713/1875");
}

TEST(ProgressLineTest, BarIsEmptyAtTheStartAndFullAtTheEnd) {
  ProgressView view = View();
  view.step = 0;
  EXPECT_NE(BarLine(view, 100).find("[>      "), std::string::npos);
  view.step = view.total_steps;
  EXPECT_NE(BarLine(view, 100).find("=====] 100%"), std::string::npos);
}

TEST(ProgressLineTest, ALossThatIsNotKnownIsLeftOut) {
  ProgressView view = View();
  view.loss.reset();
  EXPECT_EQ(PlainLine(view),
            "step 713/1875 (38%), epoch 2/5: 45.2k samples/s, ETA 0:26");
  EXPECT_EQ(BarLine(view, 48),
            "epoch 2/5 [====>        ]  38% 713/1875  45.2k/s");
}

TEST(ProgressLineTest, UnknownTotalsDivideByNothing) {
  EXPECT_EQ(BarLine(ProgressView(), 100), "step 0  0/s");
  EXPECT_EQ(PlainLine(ProgressView()), "step 0: 0 samples/s");
}

TEST(ProgressLineTest, AnOpenEndHasNeitherBarNorTotal) {
  ProgressView view = View();
  view.total_steps = 0;
  view.epochs = 0;
  EXPECT_EQ(BarLine(view, 100), "epoch 2  step 713  loss 0.3412  45.2k/s");
  EXPECT_EQ(BarLine(view, 29), "epoch 2  step 713");
  EXPECT_EQ(BarLine(view, 5), "epoch");
  EXPECT_EQ(PlainLine(view), "step 713, epoch 2: loss 0.3412, 45.2k samples/s");
  view.epoch = 0;
  EXPECT_EQ(PlainLine(view), "step 713: loss 0.3412, 45.2k samples/s");
}

TEST(ProgressLineTest, WithoutSamplesTheRateIsThatOfSteps) {
  ProgressView view = View();
  view.samples_per_second = 48;
  view.counts_steps = true;
  EXPECT_THAT(BarLine(view, 100), ::testing::HasSubstr("  48 steps/s"));
  EXPECT_THAT(PlainLine(view), ::testing::HasSubstr(", 48 steps/s"));
  view.total_steps = 0;
  EXPECT_THAT(BarLine(view, 100), ::testing::HasSubstr("  48 steps/s"));
}

TEST(ProgressLineTest, PlainLineSaysTheSameInWords) {
  EXPECT_EQ(PlainLine(View()),
            "step 713/1875 (38%), epoch 2/5: loss 0.3412, 45.2k samples/s, "
            "ETA 0:26");
}

TEST(ProgressLineTest, EvaluationNamesItsMetrics) {
  EXPECT_EQ(EvaluationLine(
                {.step = 713, .total_steps = 1875, .epoch = 2, .epochs = 5},
                "validation", {{"loss", 0.3871}, {"accuracy", 0.8612}}),
            "epoch 2/5: validation accuracy 0.8612, loss 0.3871");
  EXPECT_EQ(EvaluationLine({.step = 713}, "test", {{"loss", 0.3871}}),
            "step 713: test loss 0.3871");
}

}  // namespace
}  // namespace tributary
