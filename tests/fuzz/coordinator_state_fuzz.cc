// SPDX-License-Identifier: Apache-2.0
// The state that a coordinator has kept for a successor, as damaged bytes, and
// as such bytes with a checksum that fits, since a wrong one would end nearly
// every file at once.
#include <cstring>
#include <string>

#include "common/wire/crc32c/crc32c.h"
#include "coordinator/core/evaluation/evaluations.h"
#include "coordinator/core/job_state.h"
#include "coordinator/core/state_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/serialized.h"

namespace tributary::fuzz {
namespace {

constexpr int64_t kNow = 1'000'000'000;
constexpr int64_t kSecond = 1'000'000;
constexpr uint32_t kFew = 8;

// Lets every member of a small job send a message, and lets time pass.
void GoOn(const v1::ClusterSpec& cluster, JobState* job) {
  for (v1::Role role : {v1::ROLE_SERVER, v1::ROLE_WORKER}) {
    const auto places = static_cast<uint32_t>(
        role == v1::ROLE_SERVER ? cluster.servers() : cluster.workers());
    for (uint32_t i = 0; i < std::min(places, kFew); ++i) {
      v1::RegisterRequest request;
      request.set_role(role);
      request.set_instance("new" + std::to_string(i));
      request.set_address("127.0.0.1:" + std::to_string(1000 + i));
      const auto place = job->Register(request, kNow);
      v1::HeartbeatRequest heartbeat;
      heartbeat.set_role(role);
      heartbeat.set_index(place.ok() ? place->index() : i);
      heartbeat.set_incarnation(place.ok() ? place->incarnation() : i + 1);
      heartbeat.set_paused(true);
      if (job->Renew(role, heartbeat.index(), heartbeat.incarnation(), kNow)
              .ok())
        job->Apply(heartbeat, 0, 0);
      job->OrdersFor(heartbeat);
    }
  }
  job->Tick(kNow + 4 * kSecond);
  job->steps().RequestStop();
  job->Tick(kNow + 8 * kSecond);
  job->losses().MemberLost(v1::ROLE_SERVER, 0, 0, "it is gone",
                           kNow + 9 * kSecond);
  job->AllowStart("");
  job->WaitsFor(kNow + 10 * kSecond);
  job->Missing();
  job->Tick(kNow + 13 * kSecond);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  std::string file;
  if (input.Byte() & 1) {
    const absl::string_view message = input.Rest();
    const uint32_t crc = Crc32c(message.data(), message.size());
    file.assign(reinterpret_cast<const char*>(&crc), sizeof(crc));
    file.append(message.data(), message.size());
  } else {
    file = std::string(input.Rest());
  }
  const absl::StatusOr<v1::CoordinatorState> state =
      DecodeState("coordinator.state", file);
  if (!state.ok()) return 0;

  const JobState::Options options{.job = state->job(),
                                  .job_id = state->job_id()};
  JobState job(options, *state, kNow);
  v1::CoordinatorState saved = job.Save();
  saved.set_term(state->term());
  for (const EvaluationRecord& record :
       EvaluationsOf(state->evaluations(), "test")) {
    SaveEvaluation(record, saved.mutable_evaluations());
  }
  const absl::StatusOr<v1::CoordinatorState> read =
      DecodeState("coordinator.state", EncodeState(saved));
  Expect(read.ok(), "what a coordinator keeps can be read");
  Expect(read->term() == state->term(), "the term is kept");
  Expect(read->evaluations_size() == state->evaluations_size(),
         "no evaluation is lost");
  Expect(Serialized(JobState(options, *read, kNow).Save()) ==
             Serialized(job.Save()),
         "the successor's successor keeps the same");
  GoOn(state->job().cluster(), &job);
  Expect(DecodeState("coordinator.state", EncodeState(job.Save())).ok(),
         "a coordinator that went on can be followed again");
  return 0;
}

}  // namespace tributary::fuzz
