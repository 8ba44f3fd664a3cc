// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/wire/calls/completion_tag.h"

namespace tributary {

// Makes unary calls to the servers of a plan and sets alarms. When a call or an
// alarm ends, its CompletionTag comes from the queue. In programs gRPC carries
// the calls (grpc_calls.h); the simulator carries them over a network that
// loses, repeats and damages messages
// (tests/simulation/processes/simulated_calls.h).
class OutgoingCalls {
 public:
  // A call under way. Must be destroyed only after its tag has come.
  class Call {
   public:
    virtual ~Call() = default;
    // Makes the call end soon, with Cancelled. Any thread may call this.
    virtual void Cancel() = 0;
    // Call it once, after the call's tag has come.
    virtual absl::StatusOr<grpc::ByteBuffer> TakeAnswer() = 0;
  };
  // The tag of an alarm comes when its time is over or it is cancelled.
  class Alarm {
   public:
    virtual ~Alarm() = default;
    virtual void Cancel() = 0;
  };

  virtual ~OutgoingCalls() = default;
  // server: its index in the plan. method: such as
  // "/tributary.v1.ParameterService/Pull"; must live for ever.
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
  // Waits for the next tag, at most for `timeout`, and handles it.
  virtual Next HandleNext(absl::Duration timeout) = 0;
  // Call it when no further call or alarm is started. HandleNext then handles
  // the tags that are left, and after them returns kShutdown.
  virtual void Shutdown() = 0;
  // Makes a call and waits for its answer. Any thread may call this.
  virtual absl::StatusOr<grpc::ByteBuffer> CallAndWait(
      int server, const char* method, const grpc::ByteBuffer& request,
      absl::Duration timeout) = 0;
};

}  // namespace tributary
