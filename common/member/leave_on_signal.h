// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/host/end_on_signal.h"
#include "common/member/member.h"

namespace tributary {

// While this object lives, SIGTERM makes a daemon log that it is ending and
// give its place back. Otherwise the job would wait for the place until the
// lease expires. `name`: "rank 1".
class LeaveOnSignal {
 public:
  LeaveOnSignal(Member* member, const std::string& name);

 private:
  const LastWords last_words_;
};

}  // namespace tributary
