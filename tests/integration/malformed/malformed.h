// SPDX-License-Identifier: Apache-2.0
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
  // The expected status; kOk: any answer is accepted.
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string piece;  // of the error message
};

// Damages the bytes of a real message: truncates them, flips bits, writes
// lengths that are far too large, or replaces bytes.
std::string Spoil(std::string bytes, std::mt19937& random);

// Returns `bytes` zeros, compressed with gzip to a thousandth, without ever
// holding all of them in memory.
std::string CompressedZeros(size_t bytes);

// Random messages to the servers of `plan`: two servers with one parameter
// each, the last parameter on the first server. `repeated` was accepted by the
// server before, so a copy that is still valid counts as a repetition.
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

// Random messages to the coordinator of a running job in which every place is
// held. `worker` is the heartbeat of one of the holders.
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
