// SPDX-License-Identifier: Apache-2.0
#include "common/member/member_display.h"

#include <utility>

#include "common/host/memory/peak_memory.h"

namespace tributary {

void MemberDisplay::SetWaitingFor(v1::Wait wait) {
  absl::MutexLock lock(&mu_);
  wait_ = std::move(wait);
}

std::string MemberDisplay::waiting_for() const {
  absl::MutexLock lock(&mu_);
  return wait_.text();
}

void MemberDisplay::SetDevice(std::string device) {
  absl::MutexLock lock(&mu_);
  device_ = std::move(device);
}

void MemberDisplay::SetBytes(uint64_t sent, uint64_t received) {
  absl::MutexLock lock(&mu_);
  bytes_sent_ = sent;
  bytes_received_ = received;
}

void MemberDisplay::Fill(v1::HeartbeatRequest* request) const {
  absl::MutexLock lock(&mu_);
  *request->mutable_wait() = wait_;
  request->set_bytes_sent(bytes_sent_);
  request->set_bytes_received(bytes_received_);
  request->set_peak_memory_bytes(PeakMemoryBytes());
  request->set_device(device_);
}

}  // namespace tributary
