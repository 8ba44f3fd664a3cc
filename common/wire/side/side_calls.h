// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/wire/identity/call_guard.h"

namespace tributary {

// Serves gRPC's own services: health checking (grpc.health.v1) and server
// reflection. At a parameter server they share the queue of the hot path: a
// second polling thread would take events from it. Every call with a method
// that is not the server's own arrives here; an unknown method is answered with
// Unimplemented. Only the queue's thread uses this class.
class SideCalls {
 public:
  // Limit of concurrent calls, because a watch may last for ever. Further calls
  // are refused.
  static constexpr int kMaxCalls = 64;

  // `services`: the names of the server's own services. Register service() with
  // the builder and call Start once the server is built.
  // `guard` decides who may call.
  // Without `reflection` its methods are unknown.
  SideCalls(std::vector<std::string> services,
            std::shared_ptr<const CallGuard> guard, bool reflection);
  grpc::AsyncGenericService* service() { return &service_; }
  void Start(grpc::ServerCompletionQueue* queue);

  // The server shuts down: health checks now answer NOT_SERVING. Watching
  // clients are told, and their calls end.
  void GoHome();
  // Starts no further operation on the queue. Call it before the queue's
  // shutdown.
  void Drain() { draining_ = true; }

 private:
  class Call;

  const std::vector<std::string> services_;
  const std::shared_ptr<const CallGuard> guard_;
  const bool reflection_;
  grpc::AsyncGenericService service_;
  grpc::ServerCompletionQueue* queue_ = nullptr;
  std::set<Call*> calls_;  // accepted and not over yet
  bool serving_ = true;
  bool draining_ = false;
};

}  // namespace tributary
