// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// The arithmetic of a place whose holders have used several kinds of devices.
inline constexpr char kSeveralArithmetics[] = "several";

// Limits a text that a member sent in a heartbeat to 4096 bytes.
std::string ShortSentence(absl::string_view text);

// The figures that a member reported last, for display.
struct MemberFigures {
  v1::Wait wait;
  std::string device;
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t peak_memory_bytes = 0;
  double optimizer_seconds = 0;

  // Cuts texts and lists that are longer than any member of a job with this
  // many workers needs.
  static MemberFigures Of(const v1::HeartbeatRequest& heartbeat,
                          size_t num_workers);
};

// A shard or rank, and the process that holds it.
struct Place {
  // Limits of what a member may report.
  static constexpr size_t kMaxNameBytes = 256;
  static constexpr size_t kMaxSentenceBytes = 4096;

  v1::Role role = v1::ROLE_UNSPECIFIED;
  uint32_t index = 0;
  // The latest holder; its instance is empty before the first one. Its
  // `arithmetic` is the one that all holders so far have reported, or
  // kSeveralArithmetics if they differ.
  v1::RegisterRequest holder;
  uint64_t incarnation = 0;  // of the holder; 0: none yet
  uint32_t holders = 0;      // processes that have held the place
  uint32_t losses = 0;       // leases that expired, processes that ended
  bool alive = false;        // its lease has not expired
  bool finished = false;     // reported finished; it may exit
  bool knows_end = false;    // it was told that the job is over
  int64_t last_heartbeat_micros = 0;
  MemberFigures figures;
  uint64_t reported_epoch = 0;  // plan epoch of the last heartbeat
  int64_t begun_step = 0;       // under the plan in force; 0: none
  int64_t stop_bound = -1;      // begun step when it paused; -1: not paused
  // Fields of HeartbeatRequest under the plan in force.
  int64_t cut_step = 0;
  int64_t stands_at = 0;

  // Whether a process with this arithmetic may compute different bits than
  // earlier holders of the place.
  bool Recomputes(const std::string& arithmetic) const {
    return !arithmetic.empty() && arithmetic != holder.arithmetic();
  }
  // The lowest incarnation that may hold the place from now on: that of the
  // living holder, or the one after the last holder's.
  uint64_t FirstIncarnation() const { return incarnation + (alive ? 0 : 1); }
  std::string ShortName() const;  // "worker 1"
  std::string Name() const;       // "worker 1 (10.0.0.2, pid 55)"
};

}  // namespace tributary
