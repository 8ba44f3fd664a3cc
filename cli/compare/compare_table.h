#pragma once

#include <string>
#include <vector>

#include "cli/compare/compare_report.h"

namespace tributary {

// A table as text: the terminal and the HTML report show the same.
struct CompareTable {
  struct Column {
    std::string name;
    std::string unit;   // empty: none
    bool text = false;  // stands left; numbers stand right
  };
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

// Where the time goes; what it costs and where it comes to. Every column has
// one unit and one number of decimals; "-" is what is not known.
CompareTable TimeTable(const CompareReport& report);
CompareTable ResultTable(const CompareReport& report);

// Both tables and the notes, for a terminal of about 100 columns.
std::string ReportText(const CompareReport& report);

}  // namespace tributary
