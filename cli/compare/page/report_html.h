#pragma once

#include <string>

#include "cli/compare/compare_report.h"

namespace tributary {

// The report as one page without scripts and without anything from elsewhere,
// for light and dark. An XML parser takes it.
std::string ReportHtml(const CompareReport& report);

}  // namespace tributary
