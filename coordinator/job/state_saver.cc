// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/state_saver.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/failpoint.h"
#include "common/base/mutation.h"
#include "common/status/cause.h"

namespace tributary {
namespace {

constexpr int64_t kRetryMicros = 200'000;

// Equal bytes mean equal states. Serializes deterministically (maps in key
// order).
std::string Mark(const v1::CoordinatorState& state, uint64_t revision) {
  std::string bytes = absl::StrCat(revision, ":");
  google::protobuf::io::StringOutputStream stream(&bytes);  // appends
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  state.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

// The part of the state that must be saved before it takes effect. Members send
// the last evaluations again, and the first loss only serves a notice. Without
// the newest checkpoint a successor goes back to an older one, which is kept
// until the newest is saved.
std::string MarkAhead(v1::CoordinatorState state, uint64_t revision) {
  state.clear_evaluations();
  state.clear_first_loss();
  state.clear_restore_step();
  state.clear_restore_from();
  return Mark(state, revision);
}

}  // namespace

absl::Status StateSaver::Held() const {
  if (deposed()) {
    return absl::UnavailableError(
        absl::StrCat("a later coordinator goes on with this job: its term is ",
                     deposed_by_, ", this one's ", term_));
  }
  if (!allowed_) {
    return absl::UnavailableError(
        "the coordinator's run directory is not there yet");
  }
  // A failed job has no state to protect.
  if (!held_ || given_up_ || failed_ ||
      TRIBUTARY_MUTATED("state-seen-before-saved")) {
    return absl::OkStatus();
  }
  const v1::Cause cause = CauseOf(error_);
  return WithCause(
      absl::UnavailableError(absl::StrCat(
          "the coordinator cannot save its state: ", error_.message())),
      cause == v1::CAUSE_FULL_DISK ? cause : v1::CAUSE_DISK);
}

void StateSaver::Update(v1::CoordinatorState small, uint64_t revision,
                        const AddLarge& add_large,
                        std::vector<std::string>* notices) {
  failed_ = small.phase() == v1::JOB_PHASE_FAILED;
  if (!save_ || !allowed_ || deposed()) return;
  small.set_term(term_);
  std::string mark = Mark(small, revision);
  if (mark == saved_) return;
  const int64_t now = clock_->NowMicros();
  if (!saved() && mark == tried_ && now < tried_micros_ + kRetryMicros) return;
  std::string ahead = MarkAhead(small, revision);
  v1::CoordinatorState state = std::move(small);
  add_large(&state);
  absl::Status status = save_(state);
  TRIBUTARY_FAILPOINT_OR("coordinator-state",
                         status = absl::UnavailableError("failpoint"));
  if (status.ok()) {
    if (!saved())
      notices->emplace_back("the coordinator's state is saved again");
    saved_ = std::move(mark);
    saved_ahead_ = std::move(ahead);
    held_ = false;
  } else {
    if (saved()) {
      notices->emplace_back(
          absl::StrCat("the coordinator cannot save its state, and tries "
                       "again: ",
                       status.message()));
    }
    tried_ = std::move(mark);
    tried_micros_ = now;
    const bool held = ahead != saved_ahead_;
    if (held && !held_) {
      held_micros_ = now;
      notices->emplace_back(
          "the job waits until the coordinator's state can be saved");
    }
    held_ = held;
  }
  error_ = std::move(status);
}

}  // namespace tributary
