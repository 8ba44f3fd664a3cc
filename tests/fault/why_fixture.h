// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/fault/fault_test.h"

namespace tributary {

// A long job, and `tributary why` about it.
class WhyTest : public FaultTest {
 protected:
  void SetUp() override {
    FaultTest::SetUp();
    EditJob("epochs: 40", "epochs: 100000");
    // With this rate no strategy diverges, however many steps it takes.
    EditJob("learning_rate: 0.05", "learning_rate: 0.0001");
    EditJob("lease_seconds: 3", "lease_seconds: 20");
    Isolate({});
  }

  // Gives the programs a register that only this test uses, and more variables.
  void Isolate(std::vector<std::string> variables) {
    variables.push_back("XDG_STATE_HOME=" + Path("state"));
    SetEnvironment(std::move(variables));
  }

  using json = nlohmann::json;

  json Why(const std::vector<std::string>& words) {
    std::vector<std::string> command = {"tributary", "why", "--json"};
    command.insert(command.end(), words.begin(), words.end());
    auto why = Start(command);
    exit_code_ = why->Wait(kSoon);
    return json::parse(why->output(), nullptr, /*allow_exceptions=*/false);
  }

  // Asks until the answer names this cause, and reports how long that took
  // since `begin`. Returns the sentence.
  std::string NamesIt(const std::string& injected, const std::string& cause,
                      absl::Time begin, const std::vector<std::string>& words) {
    json answer;
    EXPECT_TRUE(Eventually([&] {
      answer = Why(words);
      return answer.is_object() && answer["cause"] == cause;
    })) << injected
        << ": " << answer.dump();
    TellSeconds(injected, absl::Now() - begin);
    const std::string sentence =
        answer.is_object() ? answer["sentence"].get<std::string>() : "";
    printf("  %s: the job %s\n", cause.c_str(), sentence.c_str());
    return sentence;
  }

  // Starts a run and waits until its steps advance.
  std::unique_ptr<RunningProcess> Begin(
      const std::vector<std::string>& words = {}) {
    auto train = Train("job", words);
    ExpectAdvances();
    return train;
  }
  void ExpectAdvances() {
    EXPECT_TRUE(Eventually([&] {
      const json answer = Why({"job"});
      return answer.is_object() && answer["cause"] == "none" &&
             answer["step"] > 20;
    }));
    EXPECT_EQ(exit_code_, 0);
  }
  void StartMember(const std::string& program,
                   const std::vector<std::string>& words = {}) {
    std::vector<std::string> command = {program, "--coordinator", address_};
    command.insert(command.end(), words.begin(), words.end());
    members_.push_back(Start(command));
  }
  void End(RunningProcess& coordinator) {
    coordinator.Signal(SIGTERM);
    EXPECT_EQ(coordinator.Wait(kSoon), 128 + SIGTERM) << coordinator.output();
    for (const auto& member : members_) member->Wait(kSoon);
  }
  void KillAll(RunningProcess& coordinator) {
    for (const auto& member : members_) member->Signal(SIGKILL);
    coordinator.Signal(SIGKILL);
    coordinator.Wait(kSoon);
  }

  std::string address_;
  std::vector<std::unique_ptr<RunningProcess>> members_;
  int exit_code_ = -1;
};

}  // namespace tributary
