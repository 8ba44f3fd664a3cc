// How JobControl saves its state for a successor before any change takes
// effect.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/failpoint.h"
#include "common/base/mutation.h"
#include "coordinator/core/state_file.h"
#include "coordinator/service/job_control.h"

namespace tributary {
namespace {

constexpr int64_t kRetryMicros = 200'000;

// Serializes deterministically (maps in key order): equal states give equal
// bytes.
std::string Bytes(const v1::CoordinatorState& state) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  state.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

// The part of the state that must be saved before it takes effect. Evaluations
// are only informative. Without the newest checkpoint a successor goes back to
// an older one, which is kept until the newest is saved.
std::string BytesAhead(v1::CoordinatorState state) {
  state.clear_evaluations();
  state.clear_restore_step();
  state.clear_restore_from();
  return Bytes(state);
}

}  // namespace

absl::Status JobControl::HeldLocked() const {
  if (deposed_by_ > 0) {
    return absl::UnavailableError(
        absl::StrCat("a later coordinator goes on with this job: its term is ",
                     deposed_by_, ", this one's ", term_));
  }
  if (!saving_.allowed) {
    return absl::UnavailableError(
        "the coordinator's run directory is not there yet");
  }
  // A failed job has no state to protect.
  if (!saving_.held || saving_.given_up ||
      state_.phase() == v1::JOB_PHASE_FAILED ||
      TRIBUTARY_MUTATED("state-seen-before-saved")) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      "the coordinator cannot save its state: ", saving_.error.message()));
}

v1::CoordinatorState JobControl::StateLocked() const {
  v1::CoordinatorState state = state_.Save();
  state.set_term(term_);
  state.set_started_micros(started_micros_);
  SaveEvaluations(evaluations_.all(), &state);
  return state;
}

void JobControl::SaveStateLocked() {
  if (!save_ || !saving_.allowed) return;
  v1::CoordinatorState state = StateLocked();
  std::string bytes = Bytes(state);
  if (bytes == saving_.saved) return;
  const int64_t now = clock_->NowMicros();
  if (!saving_.error.ok() && bytes == saving_.tried &&
      now < saving_.tried_micros + kRetryMicros) {
    return;
  }
  absl::Status status = save_(state);
  TRIBUTARY_FAILPOINT_OR("coordinator-state",
                         status = absl::UnavailableError("failpoint"));
  std::string ahead = BytesAhead(std::move(state));
  if (status.ok()) {
    if (!saving_.error.ok())
      NoteLocked("the coordinator's state is saved again");
    saving_.saved = std::move(bytes);
    saving_.saved_ahead = std::move(ahead);
    saving_.held = false;
  } else {
    if (saving_.error.ok()) {
      NoteLocked(absl::StrCat("the coordinator cannot save its state, and ",
                              "tries again: ", status.message()));
    }
    saving_.tried = std::move(bytes);
    saving_.tried_micros = now;
    const bool held = ahead != saving_.saved_ahead;
    if (held && !saving_.held) {
      saving_.held_micros = now;
      NoteLocked("the job waits until the coordinator's state can be saved");
    }
    saving_.held = held;
  }
  saving_.error = std::move(status);
}

}  // namespace tributary
