// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/state_file.h"

#include <cstdint>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/job/job_options.h"
#include "common/plan/partition_plan.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"
#include "common/wire/crc32c/crc32c.h"
#include "coordinator/core/job_state.h"
#include "coordinator/core/members/membership.h"
#include "coordinator/core/model_declaration.h"

namespace tributary {
namespace {

constexpr uint64_t kMaxTerm = uint64_t{1} << 62;  // can still be incremented

absl::Status CheckClusterOfState(const v1::JobSpec& job) {
  const v1::ClusterSpec& cluster = job.cluster();
  const int fewest = StrategyOf(job).uses_servers() ? 1 : 0;
  if (cluster.servers() < fewest ||
      cluster.servers() > PartitionPlan::kMaxShards || cluster.workers() < 1 ||
      cluster.workers() > Membership::kMaxWorkers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a job of ", cluster.servers(), " servers and ", cluster.workers(),
        " workers, wanted ", fewest, " to ", PartitionPlan::kMaxShards,
        " and 1 to ", Membership::kMaxWorkers));
  }
  return absl::OkStatus();
}

absl::Status CheckPlaces(const v1::CoordinatorState& state) {
  std::set<std::pair<v1::Role, uint32_t>> seen;
  for (const v1::PlaceState& place : state.places()) {
    const v1::Role role = place.holder().role();
    const v1::ClusterSpec& cluster = state.job().cluster();
    const int64_t places = role == v1::ROLE_SERVER   ? cluster.servers()
                           : role == v1::ROLE_WORKER ? cluster.workers()
                                                     : 0;
    if (place.index() >= places) {
      return absl::InvalidArgumentError(absl::StrCat("place ", place.index(),
                                                     " of role ", role,
                                                     ", the job has ", places));
    }
    if (!seen.insert({role, place.index()}).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "place ", place.index(), " of role ", role, " stands there twice"));
    }
    if (place.incarnation() < 1 ||
        place.incarnation() > state.last_incarnation()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "incarnation ", place.incarnation(), " of place ", place.index(),
          ", wanted 1 to ", state.last_incarnation()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPlan(const v1::CoordinatorState& state) {
  if (!state.has_plan()) return absl::OkStatus();
  const v1::ClusterSpec& cluster = state.job().cluster();
  if (state.plan().servers_size() != cluster.servers() ||
      state.plan().num_workers() != cluster.workers()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a plan for ", state.plan().servers_size(), " servers and ",
        state.plan().num_workers(), " workers, the job has ", cluster.servers(),
        " and ", cluster.workers()));
  }
  return MakePartitionPlan(state.plan()).status();
}

absl::Status CheckEvaluations(
    const google::protobuf::RepeatedPtrField<v1::EvaluationState>&
        evaluations) {
  int64_t last = -1;
  for (const v1::EvaluationState& evaluation : evaluations) {
    if (evaluation.step() <= last) {
      return absl::InvalidArgumentError(
          absl::StrCat("an evaluation of step ", evaluation.step(),
                       " follows one of step ", last));
    }
    last = evaluation.step();
    const v1::EvaluationsDecided& decided = evaluation.decided();
    if (decided.best_step() < 0 || decided.since_best() < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the best evaluation is of step ", decided.best_step(), ", and ",
          decided.since_best(), " have come since; wanted 0 or more"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckState(const v1::CoordinatorState& state) {
  if (state.phase() < v1::JOB_PHASE_WAITING ||
      state.phase() > v1::JOB_PHASE_FAILED) {
    return absl::InvalidArgumentError(
        absl::StrCat("job phase ", static_cast<int>(state.phase()),
                     ", wanted 1 to ", v1::JOB_PHASE_FAILED));
  }
  if (state.restore_step() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "restore step ", state.restore_step(), ", wanted 0 or more"));
  }
  if (state.term() > kMaxTerm) {
    return absl::InvalidArgumentError(
        absl::StrCat("term ", state.term(), ", wanted at most ", kMaxTerm));
  }
  TRIBUTARY_RETURN_IF_ERROR(CheckClusterOfState(state.job()));
  TRIBUTARY_RETURN_IF_ERROR(CheckEvaluations(state.evaluations()));
  TRIBUTARY_RETURN_IF_ERROR(CheckEvaluations(state.tests()));
  if (!state.declaration().parameters().empty()) {  // for the next plan
    TRIBUTARY_RETURN_IF_ERROR(
        CheckDeclaration(state.declaration(), state.job()));
  }
  TRIBUTARY_RETURN_IF_ERROR(CheckPlan(state));
  return CheckPlaces(state);
}

}  // namespace

std::string Checked(const google::protobuf::MessageLite& message) {
  std::string bytes(sizeof(uint32_t), '\0');
  message.AppendToString(&bytes);
  const uint32_t crc =
      Crc32c(bytes.data() + sizeof(crc), bytes.size() - sizeof(crc));
  std::memcpy(bytes.data(), &crc, sizeof(crc));
  return bytes;
}

bool ReadChecked(absl::string_view bytes,
                 google::protobuf::MessageLite* message) {
  uint32_t crc = 0;
  if (bytes.size() < sizeof(crc)) return false;
  std::memcpy(&crc, bytes.data(), sizeof(crc));
  bytes.remove_prefix(sizeof(crc));
  return Crc32c(bytes.data(), bytes.size()) == crc &&
         message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

std::string EncodeState(const v1::CoordinatorState& state) {
  return Checked(state);
}

absl::StatusOr<v1::CoordinatorState> DecodeState(const std::string& file,
                                                 absl::string_view bytes) {
  if (bytes.size() < sizeof(uint32_t)) {
    return absl::DataLossError(
        absl::StrCat(file, " is cut short after ", bytes.size(), " bytes"));
  }
  v1::CoordinatorState state;
  if (!ReadChecked(bytes, &state)) {
    return absl::DataLossError(absl::StrCat(file, " is damaged"));
  }
  if (const absl::Status status = CheckState(state); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, " is impossible: ", status.message()));
  }
  return state;
}

}  // namespace tributary
