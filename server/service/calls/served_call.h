// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/wire/identity/call_guard.h"

namespace tributary {

// A unary call that has reached a server, as its handler sees it. The handler
// calls Answer or Fail exactly once, from any thread; the call is gone then.
class ServedCall {
 public:
  virtual ~ServedCall() = default;

  // Moves the request out of the call, so that a payload lives as long as its
  // new owner wants, even if the call still waits.
  virtual grpc::ByteBuffer TakeRequest() = 0;
  virtual void Answer(const grpc::ByteBuffer& response) = 0;
  virtual void Fail(const absl::Status& status) = 0;
  // Address of the connection: "ipv4:127.0.0.1:40000".
  virtual std::string peer() const = 0;

  // The caller. It is set before the handler gets the call.
  const Caller& caller() const { return caller_; }
  void SetCaller(Caller caller) { caller_ = std::move(caller); }

 private:
  Caller caller_;
};

}  // namespace tributary
