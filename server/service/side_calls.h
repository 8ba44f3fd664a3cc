#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <set>
#include <string>
#include <vector>

namespace tributary {

// gRPC's own services beside ours: health checking (grpc.health.v1) and server
// reflection, on the queue that serves the hot path, so that no other thread
// polls the sockets and takes its events. Every call whose method is none of
// the server's own comes here; an unknown one is answered with Unimplemented.
// For the queue's thread alone.
class SideCalls {
 public:
  // More calls than these at a time are refused: a watch may stay for ever.
  static constexpr int kMaxCalls = 64;

  // `services`: the names of the server's own. Register `service()` with the
  // builder; then, with the server built, Start.
  explicit SideCalls(std::vector<std::string> services);
  grpc::AsyncGenericService* service() { return &service_; }
  void Start(grpc::ServerCompletionQueue* queue);

  // From here on the answer is NOT_SERVING; who watches is told, and its call
  // ends.
  void GoHome();
  // From here on nothing is started on the queue: call before its shutdown.
  void Drain() { draining_ = true; }

 private:
  class Call;

  const std::vector<std::string> services_;
  grpc::AsyncGenericService service_;
  grpc::ServerCompletionQueue* queue_ = nullptr;
  std::set<Call*> calls_;  // accepted and not yet over
  bool serving_ = true;
  bool draining_ = false;
};

}  // namespace tributary
