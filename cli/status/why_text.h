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
// "step 51": the first step that some worker has not finished.
std::string OpenStepText(const v1::JobStatusResponse& status);
// The step that workers have reached, by the samples, without waiting for late
// ones, as backup workers and async allow; 0: no worker goes on.
int64_t StepWithoutLate(const WhyFacts& facts);
// Whether further samples could show that workers go on without the late ones.
bool MayGoOnWithoutLate(const WhyFacts& facts);
// The beginning of a sentence that blames this member: "does not advance: step
// 51 waits for worker 1 (node-a, pid 28571)", or "goes on to step 90 without
// worker 1 (node-a, pid 28571)".
std::string WaitText(const WhyFacts& facts, const v1::MemberStatus& member);
// "4.2 s", "12:34".
std::string AgeText(double seconds);
// The pace of the job: "41 steps a second", "one step in 3.2 s".
std::string PaceText(double seconds_a_step);

}  // namespace tributary
