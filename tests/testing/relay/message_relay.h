// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "server/service/calls/raw_call.h"

namespace tributary::testing {

// Sends messages as bytes, whatever these are. For one thread.
class MessageSender {
 public:
  explicit MessageSender(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(channel) {}

  // Returns the bytes of the answer. `method`: such as
  // "/tributary.v1.ParameterService/Pull".
  absl::StatusOr<std::string> Send(const std::string& method,
                                   const std::string& message);

 private:
  grpc::GenericStub stub_;
};

// Stands between workers and a server. It takes their calls as bytes, so that a
// test can change a message on its way.
class MessageRelay {
 public:
  // Answers a call of ParameterService. Runs on the relay's thread, for one
  // call at a time.
  using Handler = std::function<absl::StatusOr<std::string>(
      const std::string& method, const std::string& message)>;

  explicit MessageRelay(Handler handler);
  // No call may be in progress.
  ~MessageRelay();

  const std::string& address() const { return address_; }

 private:
  void Take(const std::string& method, RawCall* call);
  void Loop();

  const Handler handler_;
  std::string address_;
  RawParameterService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::thread thread_;
};

}  // namespace tributary::testing
