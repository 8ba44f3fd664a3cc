// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/compare/compare_report.h"

namespace tributary {

// The report as one page without scripts or external resources, for light and
// dark. An XML parser accepts it.
std::string ReportHtml(const CompareReport& report);

}  // namespace tributary
