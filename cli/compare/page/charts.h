#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/compare/compare_report.h"

namespace tributary {

// The report's charts as SVG elements. Colours and fonts are classes that the
// page's style sheet (report_html.cc) knows, for light and dark.

// A bar for each run, made of its step's parts in milliseconds.
std::string StepPartsChart(const CompareReport& report);

// A row for each rank of each run's typical step, all runs on one scale; empty:
// no run has one.
std::string TimelineChart(const CompareReport& report);

// Loss over steps, a line for each run; empty: there is none.
std::string LossChart(const CompareReport& report);
// By how much the loss is away from the single process's, on a logarithmic
// scale; empty when nothing is to be seen: no single process, or no difference.
std::string LossDifferenceChart(const CompareReport& report);

// At most `most` points: means over equal runs of neighbours.
std::vector<LossPoint> Thin(const std::vector<LossPoint>& points, size_t most);

}  // namespace tributary
