// SPDX-License-Identifier: Apache-2.0
#include "common/member/leave_on_signal.h"

#include "spdlog/spdlog.h"

namespace tributary {

LeaveOnSignal::LeaveOnSignal(Member* member, const std::string& name)
    : last_words_([member, name] {
        spdlog::warn("SIGTERM: gives back the place of {} and ends", name);
        member->Leave("it got SIGTERM");
        spdlog::default_logger()->flush();
      }) {}

}  // namespace tributary
