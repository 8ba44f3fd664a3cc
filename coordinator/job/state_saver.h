// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "tributary/v1/coordinator_state.pb.h"

namespace tributary {

// Saves the state of a job for a later coordinator, and decides whether the
// newest state may be seen. While it is not saved, or once another coordinator
// has replaced this one, it is held back. Evaluations and the newest checkpoint
// are saved too, but hold nothing back. A plain object: its owner locks.
class StateSaver {
 public:
  // OK: the state is on disk.
  using Save = std::function<absl::Status(const v1::CoordinatorState&)>;

  // `save` may be null: nothing is saved, and nothing is held back for it.
  // `term`: of this coordinator.
  StateSaver(Save save, const Clock* clock, uint64_t term)
      : save_(std::move(save)), clock_(clock), term_(term) {}

  // Nothing may be seen before this call.
  void Allow() { allowed_ = true; }
  // Saves the state unless it is saved already. While saving fails it tries
  // again every 200 ms. Adds messages about failures to `notices`. This is
  // called with every heartbeat, so it looks at `small` alone, the state
  // without its large parts. `revision` rises with every change of those;
  // `add_large` adds them when the state has to be written.
  using AddLarge = std::function<void(v1::CoordinatorState*)>;
  void Update(v1::CoordinatorState small, uint64_t revision,
              const AddLarge& add_large, std::vector<std::string>* notices);
  // Another coordinator of the job has a higher term: nothing is saved again.
  void Depose(uint64_t term) { deposed_by_ = term; }
  // The state has been held back for this time.
  bool HeldFor(int64_t micros) const {
    return held_ && clock_->NowMicros() - held_micros_ >= micros;
  }
  // Shows the state of the job although it is not saved.
  void GiveUp() { given_up_ = true; }

  // Why the newest state must not be seen yet; OK: it may.
  absl::Status Held() const;
  // Since when the state is held back, by the clock.
  int64_t held_micros() const { return held_micros_; }
  // Whether every change is on disk.
  bool saved() const { return error_.ok(); }
  bool deposed() const { return deposed_by_ > 0; }
  uint64_t term() const { return term_; }

 private:
  const Save save_;
  const Clock* const clock_;
  const uint64_t term_;
  uint64_t deposed_by_ = 0;  // its term; 0: none
  bool allowed_ = false;
  // Marks of a state's small parts and revision: the state on disk, its part
  // that must be saved before it is seen, and the state that could not be saved
  // last.
  std::string saved_;
  std::string saved_ahead_;
  std::string tried_;
  int64_t tried_micros_ = 0;
  absl::Status error_;  // why the newest state is not saved
  bool held_ = false;
  int64_t held_micros_ = 0;  // since when
  bool given_up_ = false;
  bool failed_ = false;  // the job has failed
};

}  // namespace tributary
