// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tributary {

// Stands for a Member's machine and for gRPC in the simulator.
class SimulatedHost {
 public:
  virtual ~SimulatedHost() = default;
  virtual std::string name() const = 0;
  virtual int64_t pid() const = 0;
  // Makes one attempt to call the coordinator. The type of the request names
  // the method. A client that is cancelled meanwhile waits until the attempt
  // ends.
  virtual absl::Status Call(const google::protobuf::Message& request,
                            absl::Duration timeout,
                            google::protobuf::Message* response) = 0;
  // A random number from 0 up to 1, for the pauses between attempts.
  virtual double Chance() = 0;
};

}  // namespace tributary
