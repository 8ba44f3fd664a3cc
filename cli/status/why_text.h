// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "cli/status/why.h"

namespace tributary {

// Parts of the sentences of `tributary why`.

// "worker 1 (node-a, pid 28571)", "server 0 (node-a, pid 28570)".
std::string MemberText(const v1::MemberStatus& member);
// "step 51": the one that is not finished by every worker.
std::string OpenStepText(const v1::JobStatusResponse& status);
// How far workers have come that do not wait for the late ones, as with backup
// workers and async, by the samples; 0: no worker goes on.
int64_t StepWithoutLate(const WhyFacts& facts);
// Whether further samples could show that.
bool MayGoOnWithoutLate(const WhyFacts& facts);
// How a sentence begins whose cause is this member: "does not advance: step 51
// waits for worker 1 (node-a, pid 28571)", or "goes on to step 90 without
// worker 1 (node-a, pid 28571)".
std::string WaitText(const WhyFacts& facts, const v1::MemberStatus& member);
// "4.2 s", "12:34".
std::string AgeText(double seconds);
// Steps of the job in a second: "41 steps a second", "one step in 3.2 s".
std::string PaceText(double seconds_a_step);

}  // namespace tributary
