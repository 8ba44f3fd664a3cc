// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/compare/compare_report.h"

namespace tributary {

// The whole report for programs (docs/run-directory.md). An unknown value is
// null.
std::string ReportJson(const CompareReport& report);

}  // namespace tributary
