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
// newest state may be seen. The state is held back while it is not saved, or
// once another coordinator has replaced this one. Evaluations and the newest
// checkpoint are saved too, but hold nothing back. A plain object: its owner
// locks.
class StateSaver {
 public:
  // OK: the state is on disk.
  using Save = std::function<absl::Status(const v1::CoordinatorState&)>;

  // `save` may be null: nothing is saved, and nothing is held back for saving.
  // `term`: this coordinator's.
  StateSaver(Save save, const Clock* clock, uint64_t term)
      : save_(std::move(save)), clock_(clock), term_(term) {}

  // Nothing may be seen before this call.
  void Allow() { allowed_ = true; }
  // Saves the state unless it is saved already. If saving fails, tries again
  // every 200 ms. Adds messages about failures to `notices`. This is called
  // with every heartbeat, so it looks only at `small`, the state without its
  // large parts. `revision` increases with every change of the large parts;
  // `add_large` adds them when the state has to be written.
  using AddLarge = std::function<void(v1::CoordinatorState*)>;
  void Update(v1::CoordinatorState small, uint64_t revision,
              const AddLarge& add_large, std::vector<std::string>* notices);
  // Call it when another coordinator of the job has a higher term: from then
  // on, nothing is saved.
  void Depose(uint64_t term) { deposed_by_ = term; }
  // Whether the state has been held back for this long.
  bool HeldFor(int64_t micros) const {
    return held_ && clock_->NowMicros() - held_micros_ >= micros;
  }
  // Lets the state be seen although it is not saved.
  void GiveUp() { given_up_ = true; }

  // Why the newest state must not be seen yet; OK: it may be seen.
  absl::Status Held() const;
  // When the state began to be held back, by the clock.
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
  // Marks, which are made from a state's small parts and revision: of the state
  // on disk, of that state's part that must be saved before it is seen, and of
  // the state whose saving was tried last.
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
