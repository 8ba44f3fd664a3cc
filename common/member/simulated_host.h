// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tributary {

// What the simulator gives a Member in place of its machine and of gRPC.
class SimulatedHost {
 public:
  virtual ~SimulatedHost() = default;
  virtual std::string name() const = 0;
  virtual int64_t pid() const = 0;
  // One attempt to call the coordinator. The type of the request names the
  // method.
  virtual absl::Status Call(const google::protobuf::Message& request,
                            absl::Duration timeout,
                            google::protobuf::Message* response) = 0;
  // From 0 up to 1, for the pauses between attempts.
  virtual double Chance() = 0;
};

}  // namespace tributary
