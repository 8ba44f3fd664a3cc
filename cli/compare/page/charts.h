// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/compare/compare_report.h"

namespace tributary {

// The report's charts as SVG elements. Colours and fonts are classes of the
// page's style sheet (report_html.cc), for light and dark.

// A bar for each run, divided into the parts of its step, in milliseconds.
std::string StepPartsChart(const CompareReport& report);

// A row for each rank of each run's typical step, with one scale for all runs;
// empty: no run has a typical step.
std::string TimelineChart(const CompareReport& report);

// Loss over steps, a line for each run; empty: there are no losses.
std::string LossChart(const CompareReport& report);
// The difference of the loss from the single process's loss, on a logarithmic
// scale; empty: there is no single process, or no difference.
std::string LossDifferenceChart(const CompareReport& report);

// Reduces points to at most `most`: each is the mean of equally many
// neighbours.
std::vector<LossPoint> Thin(const std::vector<LossPoint>& points, size_t most);

}  // namespace tributary
