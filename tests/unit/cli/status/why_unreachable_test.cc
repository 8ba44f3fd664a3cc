// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "cli/status/why.h"

namespace tributary {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(WhyUnreachableTest, TheRunDirectoryAndTheProcessSayWhy) {
  UnreachableFacts facts;
  KnownJob& known = facts.known;
  known.job.coordinator = "here:7070";
  known.job.host = "here";
  known.job.pid = 99;
  facts.why = absl::UnavailableError(
      "coordinator here:7070 could not be reached for 2.0 s: nobody listens "
      "there");
  const auto explain = [&](std::optional<RunOutcome> outcome) {
    facts.outcome = std::move(outcome);
    return ExplainUnreachable(facts);
  };
  EXPECT_EQ(explain(std::nullopt).cause, WhyCause::kNoCoordinator);
  EXPECT_EQ(explain(std::nullopt).sentence,
            "has no coordinator: coordinator here:7070 could not be reached "
            "for 2.0 s: nobody listens there");
  known.life = CoordinatorLife::kRuns;
  known.job.encrypted = true;
  EXPECT_THAT(
      explain(std::nullopt).sentence,
      HasSubstr("has a coordinator (here, pid 99) that answers only with "
                "a certificate of its authority: give --tls FOLDER"));
  facts.proved = true;
  EXPECT_THAT(explain(std::nullopt).sentence, HasSubstr("give --tls FOLDER"))
      << "it may be a certificate of another authority";
  known.life = CoordinatorLife::kEnds;
  EXPECT_EQ(explain(std::nullopt).sentence,
            "ends: its coordinator (here, pid 99) has closed its port and "
            "writes its last files; its screen says what it waits for, if "
            "anything");
  known.life = CoordinatorLife::kStopped;
  EXPECT_EQ(explain(std::nullopt).cause, WhyCause::kStoppedCoordinator);
  known.life = CoordinatorLife::kGone;
  EXPECT_THAT(explain(std::nullopt).sentence,
              HasSubstr("(here, pid 99) has ended without a summary, so it was "
                        "killed or could not write one"));
  known.job.run_directory = "/my runs/a";
  EXPECT_THAT(explain(std::nullopt).sentence,
              HasSubstr("; `tributary checkpoint list '/my runs/a'` shows"));
  known.directory_is_gone = true;
  EXPECT_THAT(explain(std::nullopt).sentence,
              EndsWith("could not write one; its run directory is gone"));
  EXPECT_EQ(explain(RunOutcome{.status = "done", .steps = 32}).cause,
            WhyCause::kDone);
  const WhyAnswer stopped = explain(RunOutcome{.status = "interrupted",
                                               .steps = 812,
                                               .total_steps = 5000,
                                               .resume_command = "resume it"});
  EXPECT_EQ(stopped.cause, WhyCause::kInterrupted);
  EXPECT_EQ(stopped.sentence,
            "was stopped after step 812 of 5,000; continue with: resume it");
  EXPECT_EQ(explain(RunOutcome{.status = "interrupted", .steps = 8}).sentence,
            "was stopped after step 8; there is no checkpoint to continue "
            "from");
  EXPECT_EQ(explain(RunOutcome{.status = "failed",
                               .message = "the loss is nan",
                               .cause = "divergence"})
                .cause,
            WhyCause::kDiverges);
}

}  // namespace
}  // namespace tributary
