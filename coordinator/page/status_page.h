// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/string_view.h"
#include "common/telemetry/http_listener.h"
#include "coordinator/page/run_history.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// The style sheet of all pages that Tributary makes: colours for light and
// dark, fonts, tables and charts. Without "<" and "&".
absl::string_view PageStyle();

// The page for people: one HTML document that holds its style and its script,
// and reads status.json and history.json beside it. Its headers allow nothing
// else, so nothing that a member sends can be executed.
HttpAnswer StatusPage();

// status.json, which the page reads every two seconds: the output of `tributary
// status --json`, without the events.
HttpAnswer StatusAnswer(v1::JobStatusResponse status);

// history.json, which the page reads less often: curves and events.
HttpAnswer HistoryAnswer(const RunHistory& history,
                         const v1::JobStatusResponse& status);

}  // namespace tributary
