// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/compare/compare_report.h"

namespace tributary {

// A table as text, the same for the terminal and the HTML report.
struct CompareTable {
  struct Column {
    std::string name;
    std::string unit;   // empty: none
    bool text = false;  // text is left-aligned, numbers right-aligned
  };
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

// TimeTable shows how step time is spent; ResultTable shows resources and
// results. Every column has one unit and one number of decimals; "-" means
// unknown.
CompareTable TimeTable(const CompareReport& report);
CompareTable ResultTable(const CompareReport& report);

// Both tables and the notes, for a terminal of about 100 columns.
std::string ReportText(const CompareReport& report);

}  // namespace tributary
