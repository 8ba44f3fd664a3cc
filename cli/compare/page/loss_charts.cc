// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/compare/page/charts.h"
#include "cli/compare/page/drawing.h"

namespace tributary {

std::vector<LossPoint> Thin(const std::vector<LossPoint>& points, size_t most) {
  if (points.size() <= most) return points;
  std::vector<LossPoint> thin;
  for (size_t i = 0; i < most; ++i) {
    const size_t begin = i * points.size() / most;
    const size_t end = (i + 1) * points.size() / most;
    double sum = 0;
    for (size_t p = begin; p < end; ++p) sum += points[p].loss;
    thin.push_back({points[(begin + end - 1) / 2].step,
                    sum / static_cast<double>(end - begin)});
  }
  return thin;
}

namespace {

constexpr size_t kMostPoints = 400;
constexpr size_t kMostDifferences = 120;  // fewer: the curves are noisy
constexpr double kPlotLeft = 56;
constexpr double kPlotHeight = 280;
constexpr double kLegendColumn = 250;  // to the right of the plot
constexpr int kSeriesStyles = 8;       // styles in the style sheet

struct Series {
  std::string name;
  int style = 0;
  std::vector<LossPoint> points;
};

std::string RowName(const CompareReport& report, const CompareRow& row) {
  const auto same = std::count_if(
      report.rows.begin(), report.rows.end(),
      [&row](const CompareRow& other) { return other.name == row.name; });
  return same < 2 ? row.name
                  : absl::StrCat(row.name, ", ", row.workers, " w, ",
                                 row.servers, " s");
}

// Draws both axes, the lines, and a legend at the right. `place` maps a value
// to the range from 0 (the bottom) to 1.
template <typename Place>
std::string LineChart(const std::vector<Series>& all,
                      const std::vector<double>& ticks, const char* unit,
                      const std::string& label, Place place) {
  const double right = Drawing::kWidth - kLegendColumn, top = 28;
  const double bottom = top + kPlotHeight;
  Drawing out(std::max(bottom + Drawing::kAxisHeight,
                       40.0 + 22 * static_cast<double>(all.size())),
              label);
  int64_t last = 1;
  for (const Series& series : all) {
    last = std::max(last, series.points.back().step);
  }
  const std::vector<double> steps = LinearTicks(static_cast<double>(last), 8);
  // The last tick may lie outside, because lines use the whole width.
  const double scale = (right - kPlotLeft) / static_cast<double>(last);
  for (const double step : steps) {
    const double x = kPlotLeft + step * scale;
    if (x > right + 1) break;
    out.Line(x, top, x, bottom, step == 0 ? "axis" : "grid");
    out.Text(x, bottom + 16, "middle", "tick", TickText(step));
  }
  out.Text(right, bottom + 34, "end", "tick", "step");
  for (const double tick : ticks) {
    const double y = bottom - kPlotHeight * place(tick);
    out.Line(kPlotLeft, y, right, y, "grid");
    out.Text(kPlotLeft - 8, y + 4, "end", "tick", TickText(tick));
  }
  out.Text(kPlotLeft, 14, "start", "tick", unit);
  double y = top + 12;
  for (const Series& series : all) {
    const std::string style = absl::StrCat("line line-", series.style);
    std::string points;
    for (const LossPoint& point : series.points) {
      absl::StrAppend(
          &points, points.empty() ? "" : " ",
          Coordinate(kPlotLeft + static_cast<double>(point.step) * scale), ",",
          Coordinate(bottom - kPlotHeight * place(point.loss)));
    }
    out.Polyline(points, style);
    out.Polyline(
        absl::StrCat(Coordinate(right + 20), ",", Coordinate(y - 4), " ",
                     Coordinate(right + 52), ",", Coordinate(y - 4)),
        style);
    out.Text(right + 60, y, "start", "legend", series.name);
    y += 22;
  }
  return out.Take();
}

std::vector<Series> LossSeries(const CompareReport& report) {
  std::vector<Series> all;
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const CompareRow& row = report.rows[i];
    if (row.losses.empty()) continue;
    all.push_back({RowName(report, row), static_cast<int>(i) % kSeriesStyles,
                   row.losses});
  }
  return all;
}

}  // namespace

std::string LossChart(const CompareReport& report) {
  std::vector<Series> all = LossSeries(report);
  if (all.empty()) return "";
  double most = 0, least = 0;
  for (Series& series : all) {
    series.points = Thin(series.points, kMostPoints);
    for (const LossPoint& point : series.points) {
      most = std::max(most, point.loss);
      least = std::min(least, point.loss);
    }
  }
  // Limits the scale, so that one diverged step does not flatten all others.
  most = std::min(most, 4 * std::max(all[0].points.front().loss, 1e-6));
  const std::vector<double> ticks = LinearTicks(most - least, 5);
  std::vector<double> shown;
  for (const double tick : ticks) shown.push_back(least + tick);
  return LineChart(all, shown, "loss", "Loss over steps",
                   [least, top = ticks.back()](double loss) {
                     return std::clamp((loss - least) / top, 0.0, 1.0);
                   });
}

std::string LossDifferenceChart(const CompareReport& report) {
  if (report.rows.empty() || report.rows[0].name != "single") return "";
  std::map<int64_t, double> single;
  for (const LossPoint& point : report.rows[0].losses) {
    single[point.step] = point.loss;
  }
  std::vector<Series> all = LossSeries(report);
  double most = 0, least = 1e300;
  for (Series& series : all) {
    std::vector<LossPoint> away;
    for (const LossPoint& point : series.points) {
      const auto it = single.find(point.step);
      if (it == single.end()) continue;
      away.push_back({point.step, std::abs(point.loss - it->second)});
    }
    series.points = Thin(away, kMostDifferences);
    // A logarithmic scale cannot show equal losses.
    series.points.erase(
        std::remove_if(series.points.begin(), series.points.end(),
                       [](const LossPoint& p) { return p.loss <= 0; }),
        series.points.end());
    for (const LossPoint& point : series.points) {
      most = std::max(most, point.loss);
      least = std::min(least, point.loss);
    }
  }
  all.erase(std::remove_if(
                all.begin(), all.end(),
                [](const Series& series) { return series.points.empty(); }),
            all.end());
  if (all.empty()) return "";
  const std::vector<double> ticks = LogTicks(std::max(least, 1e-12), most);
  const double low = std::log10(ticks.front());
  const double high = std::log10(ticks.back());
  return LineChart(
      all, ticks, "difference of the losses",
      "Distance from the single process's loss", [low, high](double value) {
        return std::clamp((std::log10(value) - low) / (high - low), 0.0, 1.0);
      });
}

}  // namespace tributary
