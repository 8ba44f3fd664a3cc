// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/wire/calls/completion_tag.h"

namespace tributary {

// Makes unary calls to the servers of a plan and sets alarms. The end of each
// comes as its CompletionTag. In programs gRPC carries the calls
// (grpc_calls.h); the simulator carries them over a network that loses, repeats
// and damages messages (tests/simulation/processes/simulated_calls.h).
class OutgoingCalls {
 public:
  // A call under way. It is destroyed after its tag has come.
  class Call {
   public:
    virtual ~Call() = default;
    // Lets it end soon, with Cancelled. From any thread.
    virtual void Cancel() = 0;
    // Once, after its tag has come.
    virtual absl::StatusOr<grpc::ByteBuffer> TakeAnswer() = 0;
  };
  // Its tag comes when the time is over or it is cancelled.
  class Alarm {
   public:
    virtual ~Alarm() = default;
    virtual void Cancel() = 0;
  };

  virtual ~OutgoingCalls() = default;
  // server: its index in the plan. method: such as
  // "/tributary.v1.ParameterService/Pull"; lives for ever.
  virtual std::unique_ptr<Call> Start(int server, const char* method,
                                      const grpc::ByteBuffer& request,
                                      absl::Duration timeout,
                                      CompletionTag* tag) = 0;
  virtual std::unique_ptr<Alarm> SetAlarm(absl::Duration pause,
                                          CompletionTag* tag) = 0;
};

// The calls of one client. Their tags are handled on the thread that asks for
// the next one.
class CallQueue : public OutgoingCalls {
 public:
  enum class Next { kHandled, kTimeout, kShutdown };
  // Handles the next tag. Waits for it at most this long.
  virtual Next HandleNext(absl::Duration timeout) = 0;
  // No call and no alarm is started any more. HandleNext hands out the tags
  // that are left, then kShutdown.
  virtual void Shutdown() = 0;
  // Makes a call and waits for its answer. From any thread.
  virtual absl::StatusOr<grpc::ByteBuffer> CallAndWait(
      int server, const char* method, const grpc::ByteBuffer& request,
      absl::Duration timeout) = 0;
};

}  // namespace tributary
