#pragma once

#include <google/protobuf/message_lite.h>

#include <cstdint>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/parameter_service.pb.h"
#include "tributary/v1/plan.pb.h"

namespace tributary::testing {

// A message that no worker, server or coordinator would send.
struct Malformed {
  std::string method;
  std::string bytes;
  // What it is answered with; kOk: anything that is no harm.
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string piece;  // of the sentence
};

// Spoils bytes of a real message: cuts them, flips bits, writes lengths that
// are far too long, puts other bytes in their place.
std::string Spoil(std::string bytes, std::mt19937& random);

// Messages to a server of `plan`, drawn by chance: of two servers with a
// parameter each, the last first. `repeated` was taken by it already, so even
// what is left whole of it is a repetition.
class ServerMessages {
 public:
  ServerMessages(v1::Plan plan, v1::PushPullRequest repeated, uint32_t seed);
  Malformed Next();

 private:
  Malformed WrongPush();
  Malformed WrongOther();
  v1::BlockAddress WrongAddress(Malformed* message);

  const v1::Plan plan_;
  const v1::PushPullRequest repeated_;
  std::mt19937 random_;
};

// Messages to a coordinator whose job runs: every place is held and `worker` is
// the heartbeat of one of the holders.
class CoordinatorMessages {
 public:
  CoordinatorMessages(v1::HeartbeatRequest worker, uint32_t seed)
      : worker_(std::move(worker)), random_(seed) {}
  Malformed Next();

 private:
  Malformed WrongRegister();
  Malformed WrongHeartbeat();
  Malformed WrongOther();

  const v1::HeartbeatRequest worker_;
  std::mt19937 random_;
};

}  // namespace tributary::testing
