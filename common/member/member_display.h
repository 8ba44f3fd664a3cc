// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// The part of a heartbeat that `tributary status` shows. Thread-safe.
class MemberDisplay {
 public:
  // Sets the thing that this member waits for; with an empty text it waits for
  // nothing.
  void SetWaitingFor(v1::Wait wait);
  std::string waiting_for() const;

  void SetBytes(uint64_t sent, uint64_t received);
  // The device that this member computes on: "cpu", "cuda: NVIDIA H200".
  void SetDevice(std::string device);

  void Fill(v1::HeartbeatRequest* request) const;

 private:
  mutable absl::Mutex mu_;
  v1::Wait wait_ ABSL_GUARDED_BY(mu_);
  std::string device_ ABSL_GUARDED_BY(mu_);
  uint64_t bytes_sent_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t bytes_received_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace tributary
