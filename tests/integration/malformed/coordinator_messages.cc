// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/integration/malformed/malformed.h"

namespace tributary::testing {
namespace {

using absl::StatusCode;

constexpr char kCoordinatorService[] = "/tributary.v1.CoordinatorService/";
// Not the incarnation of any holder, even with a few bits flipped.
constexpr uint64_t kNobody = 0x5555'5555'5555'5555;

Malformed Make(const char* method, const google::protobuf::MessageLite& request,
               StatusCode code, std::string piece) {
  return {absl::StrCat(kCoordinatorService, method),
          request.SerializeAsString(), code, std::move(piece)};
}

}  // namespace

Malformed CoordinatorMessages::Next() {
  switch (random_() % 5) {
    case 0:
      return WrongRegister();
    case 1:
      return WrongHeartbeat();
    case 2:
      return WrongOther();
    case 3: {
      v1::HeartbeatRequest heartbeat = worker_;
      heartbeat.set_incarnation(kNobody);
      heartbeat.mutable_wait()->set_text("rank 1");
      heartbeat.add_steps()->set_step(1);
      return {absl::StrCat(kCoordinatorService, "Heartbeat"),
              Spoil(heartbeat.SerializeAsString(), random_)};
    }
    default: {
      const char* const methods[] = {"Register",         "DeclareModel",
                                     "GetPlan",          "Heartbeat",
                                     "ReportEvaluation", "GetJobStatus"};
      return {absl::StrCat(kCoordinatorService, methods[random_() % 6]),
              Spoil(std::string(random_() % 100, 'x'), random_)};
    }
  }
}

Malformed CoordinatorMessages::WrongRegister() {
  v1::RegisterRequest request;
  request.set_role(v1::ROLE_WORKER);
  request.set_instance("another");
  const uint32_t far = 2 + random_() % 1000;
  switch (random_() % 6) {
    case 0: {
      // Avoids ROLE_OBSERVER, which may register.
      const uint32_t role = far + 1 == v1::ROLE_OBSERVER ? 0 : far + 1;
      request.set_role(static_cast<v1::Role>(role));
      return Make("Register", request, StatusCode::kInvalidArgument,
                  absl::StrCat("role must be server or worker, got ", role));
    }
    case 1:
      request.set_instance(std::string(256 + far, 'x'));
      return Make(
          "Register", request, StatusCode::kInvalidArgument,
          absl::StrCat("instance must have 1 to 256 bytes, got ", 256 + far));
    case 2:
      request.set_wanted_index(far);
      return Make(
          "Register", request, StatusCode::kInvalidArgument,
          absl::StrCat("worker ", far, " is wanted, but the job has 2"));
    case 3:
      request.set_role(v1::ROLE_SERVER);
      request.set_address(std::string(far, ':'));
      return Make("Register", request, StatusCode::kInvalidArgument,
                  "address must be HOST:PORT");
    case 4:
      request.set_host(std::string(256 + far, 'x'));
      return Make("Register", request, StatusCode::kInvalidArgument,
                  "host must have at most 256 bytes");
    default:
      return Make("Register", request, StatusCode::kAlreadyExists,
                  "all 2 places for a worker are taken");
  }
}

Malformed CoordinatorMessages::WrongHeartbeat() {
  v1::HeartbeatRequest request = worker_;
  const uint32_t far = 2 + random_() % 1000;
  switch (random_() % 6) {
    case 0:
      request.set_index(far);
      return Make("Heartbeat", request, StatusCode::kInvalidArgument,
                  absl::StrCat("there is no place ", far));
    case 1:
      request.set_incarnation(kNobody);
      return Make("Heartbeat", request, StatusCode::kFailedPrecondition,
                  "is lost to a newer one; register again");
    case 2: {
      constexpr int64_t kFar[] = {INT64_MIN, -1, 1'000'000, INT64_MAX};
      request.set_start_step(kFar[far % 4]);
      return Make("Heartbeat", request, StatusCode::kInvalidArgument,
                  absl::StrCat("begins after step ", kFar[far % 4]));
    }
    case 3: {
      constexpr int64_t kFar[] = {INT64_MIN, 0, 17, INT64_MAX};
      request.add_steps()->set_step(kFar[far % 4]);
      return Make("Heartbeat", request, StatusCode::kInvalidArgument,
                  absl::StrCat("reports step ", kFar[far % 4],
                               " where step 1 follows"));
    }
    case 4:
      request.add_steps()->set_step(1);
      request.mutable_steps(0)->set_epoch(-static_cast<int64_t>(far));
      return Make("Heartbeat", request, StatusCode::kInvalidArgument,
                  "epochs count from 1");
    default:
      request.add_steps()->set_step(1);
      request.mutable_steps(0)->set_epoch(1);
      request.mutable_steps(0)->set_compute_seconds(far % 2 ? NAN : -1);
      return Make("Heartbeat", request, StatusCode::kInvalidArgument,
                  " seconds in step 1");
  }
}

Malformed CoordinatorMessages::WrongOther() {
  v1::DeclareModelRequest model;
  model.set_rank(worker_.index());
  model.set_incarnation(worker_.incarnation());
  model.set_total_steps(10);
  model.set_steps_per_epoch(10);
  v1::ReportEvaluationRequest evaluation;
  evaluation.set_rank(worker_.index());
  evaluation.set_incarnation(worker_.incarnation());
  v1::GetPlanRequest plan;
  switch (random_() % 6) {
    case 0:
      return Make("DeclareModel", model, StatusCode::kInvalidArgument,
                  "a plan needs at least one parameter");
    case 1:
      model.add_parameters()->add_shape(int64_t{1} << 39);
      return Make("DeclareModel", model, StatusCode::kInvalidArgument,
                  "raise bucket_bytes");
    case 2:
      model.add_parameters()->add_shape(7);
      return Make("DeclareModel", model, StatusCode::kFailedPrecondition,
                  "instead of");
    case 3:
      evaluation.set_step(-1 - static_cast<int64_t>(random_()));
      return Make("ReportEvaluation", evaluation, StatusCode::kInvalidArgument,
                  "an evaluation's step must not be negative");
    case 4:
      evaluation.mutable_part()->set_samples(3);
      evaluation.mutable_part()->set_values(random_() % 3);
      return Make("ReportEvaluation", evaluation, StatusCode::kInvalidArgument,
                  "an evaluation of 3 samples cannot have compared");
    default:
      plan.set_min_epoch(UINT64_MAX);
      return Make(
          "GetPlan", plan, StatusCode::kDeadlineExceeded,
          "the job has plan epoch 1, wanted 18446744073709551615 or later");
  }
}

}  // namespace tributary::testing
