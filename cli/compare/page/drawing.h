// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/compare/page/markup.h"

namespace tributary {

// One chart as an SVG element. Coordinates are CSS pixels of a drawing that is
// kWidth wide. Colours and fonts are classes of the page's style sheet
// (coordinator/page/assets/base.css), for light and dark.
class Drawing {
 public:
  static constexpr double kWidth = 1160;
  static constexpr double kLabelWidth = 250;  // names, left of the bars
  static constexpr double kRight = 1080;  // the right end of the longest bar
  static constexpr double kLegendHeight = 34;
  static constexpr double kAxisHeight = 44;

  struct LegendEntry {
    const char* style;
    const char* name;
  };

  Drawing(double height, const std::string& label);

  // `title` appears when the pointer rests on the rectangle.
  void Rect(double x, double y, double width, double height,
            const std::string& style, const std::string& title = "");
  void Line(double x1, double y1, double x2, double y2,
            const std::string& style);
  // anchor: "start", "middle" or "end".
  void Text(double x, double y, const char* anchor, const std::string& style,
            const std::string& text);
  void Polyline(const std::string& points, const std::string& style);

  // Draws vertical lines at round numbers of milliseconds from kLabelWidth to
  // kRight, with the numbers below; returns pixels per millisecond.
  double TimeAxis(double limit_ms, double top, double bottom);
  // Draws the legend along the top, from x.
  void Legend(const std::vector<LegendEntry>& entries, double x);

  std::string Take();

 private:
  Markup out_;
};

// The text of a number below an axis.
std::string TickText(double value);

// Returns about `count` ticks from 0 to at least `limit`, at round numbers: 1,
// 2 or 5 times a power of ten apart.
std::vector<double> LinearTicks(double limit, int count);
// Returns the powers of ten from the one at or below `least` to the one at or
// above `most`; at least two.
std::vector<double> LogTicks(double least, double most);

}  // namespace tributary
