// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/strategy.h"
#include "common/job/job_options.h"
#include "coordinator/core/job_life.h"
#include "coordinator/core/job_plan.h"
#include "coordinator/core/members/membership.h"

namespace tributary {

struct JobStateOptions {
  v1::JobSpec job;  // resolved
  uint64_t job_id = 1;
  uint32_t heartbeat_ms = 100;
  uint32_t lease_ms = 10'000;
  int64_t start_timeout_micros = 600'000'000;  // for all members to join
  // How long a lost member's place may stay empty.
  int64_t loss_timeout_micros = 120'000'000;
  JobStart start;
  // The coordinator's host, named as members name theirs; empty: unknown.
  std::string host;
  bool hold_start = false;     // no plan before AllowStart
  std::string job_key;         // signs members' tickets; empty: no tickets
  std::string checkpoint_key;  // of keyed checksums; empty: there are none
};

// What the rules of a job read and change together: JobState owns it, and
// CommonSteps and JobLosses share it.
struct JobParts {
  explicit JobParts(JobStateOptions job_options)
      : options(std::move(job_options)),
        strategy(StrategyOf(options.job)),
        membership(options.job.cluster().servers(),
                   options.job.cluster().workers(),
                   int64_t{options.lease_ms} * 1000),
        plan(options.job, options.job_id, options.start, !options.hold_start) {}

  const JobStateOptions options;
  const Strategy strategy;
  Membership membership;
  JobPlan plan;
  JobLife life;
  std::vector<std::string> notices;  // for people, about losses and returns
};

}  // namespace tributary
