// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/page/drawing.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tributary {

Drawing::Drawing(double height, const std::string& label) {
  out_.Open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
                    {"viewBox", absl::StrCat("0 0 ", Coordinate(kWidth), " ",
                                             Coordinate(height))},
                    {"role", "img"},
                    {"aria-label", label}});
}

void Drawing::Rect(double x, double y, double width, double height,
                   const std::string& style, const std::string& title) {
  out_.Open("rect", {{"class", "fill-" + style},
                     {"x", Coordinate(x)},
                     {"y", Coordinate(y)},
                     {"width", Coordinate(width)},
                     {"height", Coordinate(height)}});
  if (!title.empty()) out_.Element("title", {}, title);
  out_.Close();
}

void Drawing::Line(double x1, double y1, double x2, double y2,
                   const std::string& style) {
  out_.Empty("line", {{"class", style},
                      {"x1", Coordinate(x1)},
                      {"y1", Coordinate(y1)},
                      {"x2", Coordinate(x2)},
                      {"y2", Coordinate(y2)}});
}

void Drawing::Text(double x, double y, const char* anchor,
                   const std::string& style, const std::string& text) {
  out_.Element("text",
               {{"class", style},
                {"x", Coordinate(x)},
                {"y", Coordinate(y)},
                {"text-anchor", anchor}},
               text);
}

void Drawing::Polyline(const std::string& points, const std::string& style) {
  out_.Empty("polyline", {{"class", style}, {"points", points}});
}

double Drawing::TimeAxis(double limit_ms, double top, double bottom) {
  const std::vector<double> ticks = LinearTicks(limit_ms, 8);
  // The last tick may lie outside, because bars use the whole width.
  const double scale =
      (kRight - kLabelWidth) / (limit_ms > 0 ? limit_ms : ticks.back());
  for (const double tick : ticks) {
    const double x = kLabelWidth + tick * scale;
    if (x > kRight + 1) break;
    Line(x, top, x, bottom, tick == 0 ? "axis" : "grid");
    Text(x, bottom + 16, "middle", "tick", TickText(tick));
  }
  Text(kRight, bottom + 34, "end", "tick", "milliseconds");
  return scale;
}

void Drawing::Legend(const std::vector<LegendEntry>& entries, double x) {
  constexpr double kY = 14, kCharacter = 6.6;
  for (const LegendEntry& entry : entries) {
    Rect(x, kY - 10, 12, 12, entry.style);
    Text(x + 18, kY, "start", "legend", entry.name);
    x += 40 + kCharacter * static_cast<double>(strlen(entry.name));
  }
}

std::string Drawing::Take() {
  out_.Close();
  return out_.Take();
}

std::string TickText(double value) {
  if (value != 0 && std::abs(value) < 1e-3)
    return absl::StrFormat("%.0e", value);
  return absl::StrFormat("%g", value);
}

std::vector<double> LinearTicks(double limit, int count) {
  if (!(limit > 0) || !std::isfinite(limit)) return {0, 1};
  const double rough = limit / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double spacing = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - 1e-9)) {
      spacing = factor * power;
      break;
    }
  }
  std::vector<double> ticks = {0};
  while (ticks.back() < limit * (1 - 1e-9)) {
    ticks.push_back(spacing * static_cast<double>(ticks.size()));
  }
  return ticks;
}

std::vector<double> LogTicks(double least, double most) {
  std::vector<double> ticks;
  const int first = static_cast<int>(std::floor(std::log10(least) + 1e-9));
  const int last = static_cast<int>(std::ceil(std::log10(most) - 1e-9));
  for (int power = first; power <= std::max(last, first + 1); ++power) {
    ticks.push_back(std::pow(10, power));
  }
  return ticks;
}

}  // namespace tributary
