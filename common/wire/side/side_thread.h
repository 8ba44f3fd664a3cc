// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/wire/identity/call_guard.h"
#include "common/wire/side/side_calls.h"

namespace tributary {

// Serves SideCalls beside services of gRPC's synchronous interface, on a queue
// and a thread of their own. gRPC's own services of health and reflection would
// answer every caller.
class SideThread {
 public:
  // As SideCalls.
  SideThread(std::vector<std::string> services,
             std::shared_ptr<const CallGuard> guard, bool reflection);
  // Call Add before `builder` builds the server, and Start afterwards.
  void Add(grpc::ServerBuilder* builder);
  void Start();

  // Health checks now answer NOT_SERVING.
  void GoHome();
  // Ends the thread; idempotent. Call it after the server's Shutdown and before
  // its destructor, to which the calls still refer.
  void Stop();
  ~SideThread() { Stop(); }

 private:
  // Does, on this thread, what other threads have requested.
  void Obey();

  SideCalls calls_;  // of the thread
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  grpc::Alarm home_alarm_;  // these wake the thread; their tag is null
  grpc::Alarm stop_alarm_;
  absl::Mutex mu_;
  bool go_home_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace tributary
