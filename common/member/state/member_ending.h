// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// How a member's part in a job ends: its program takes no further step, it has
// finished, and perhaps the coordinator needs its final weights. A plain
// object.
class MemberEnding {
 public:
  void EndProgram() { program_ended_ = true; }
  void Finish() { finishing_ = true; }
  void GiveWeights() { wants_weights_ = false; }

  bool finishing() const { return finishing_; }
  bool acknowledged() const { return acknowledged_; }
  bool wants_weights() const { return wants_weights_; }
  // Whether the coordinator does not know yet that the program has ended.
  bool UntoldProgram() const { return program_ended_ && !told_program_ended_; }

  // all_reported: the request holds the last reports of steps.
  void AddTo(v1::HeartbeatRequest* request, bool all_reported) const {
    request->set_program_ended(program_ended_);
    request->set_finished(finishing_ && all_reported);
  }
  // For an answer to a request under the plan in force. all_taken: the
  // coordinator has taken every report of a step.
  void Settle(const v1::HeartbeatRequest& request, bool all_taken) {
    if (request.finished() && all_taken) acknowledged_ = true;
    told_program_ended_ = request.program_ended();
  }
  // asked: the answer belongs to the plan in force and wants the weights.
  void Follow(bool asked) { wants_weights_ = finishing_ && asked; }

 private:
  bool program_ended_ = false;
  bool told_program_ended_ = false;
  bool finishing_ = false;
  bool acknowledged_ = false;
  bool wants_weights_ = false;
};

}  // namespace tributary
