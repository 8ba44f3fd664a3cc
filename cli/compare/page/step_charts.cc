// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/compare/page/charts.h"
#include "cli/compare/page/drawing.h"

namespace tributary {
namespace {

constexpr double kWidth = Drawing::kWidth;
constexpr double kLabelWidth = Drawing::kLabelWidth;
constexpr double kLegendHeight = Drawing::kLegendHeight;
constexpr double kAxisHeight = Drawing::kAxisHeight;
constexpr double kNarrowest = 34;  // bars at least this wide show their number

struct Part {
  double StepParts::*seconds;
  const char* style;
  const char* name;
};
constexpr Part kParts[] = {
    {&StepParts::data, "data", "waiting for data"},
    {&StepParts::compute, "forward", "compute"},
    {&StepParts::communication, "exposed", "exposed communication"},
    {&StepParts::waiting, "waiting", "waiting for slower workers"},
    {&StepParts::optimizer, "optimizer", "optimizer"},
};

const std::vector<Drawing::LegendEntry> kTimelineLegend = {
    {"data", "waiting for data"},
    {"forward", "forward"},
    {"backward", "backward"},
    {"exposed", "exposed communication"},
    {"waiting", "waiting for slower workers"},
    {"communication", "messages under way"},
    {"optimizer", "optimizer"},
};

std::string PlacesText(const CompareRow& row) {
  return absl::StrCat(row.workers, row.workers == 1 ? " worker" : " workers",
                      ", ", row.servers,
                      row.servers == 1 ? " server" : " servers");
}

std::string Millis(double ms) {
  return absl::StrFormat("%.*f", ms < 10 ? 2 : ms < 100 ? 1 : 0, ms);
}

}  // namespace

// ---- parts of a step

namespace {

void DrawBar(Drawing* out, const CompareRow& row, double scale, double y) {
  constexpr double kBar = 22;
  constexpr double kValueWidth = 72;  // width of "1234 ms" and a margin
  double x = kLabelWidth;
  for (const Part& part : kParts) {
    const double ms = 1e3 * (*row.parts).*part.seconds;
    const double width = ms * scale;
    if (width < 0.05) continue;
    out->Rect(x, y, width, kBar, part.style,
              absl::StrCat(row.name, ": ", part.name, " ", Millis(ms), " ms"));
    if (width >= kNarrowest) {
      const std::string style = absl::StrCat("on-", part.style);
      out->Text(x + width / 2, y + 15, "middle", style, Millis(ms));
    }
    x += width;
  }
  if (row.predicted_step_seconds) {
    const double at = kLabelWidth + 1e3 * *row.predicted_step_seconds * scale;
    // Draws above and below the bar, to keep the bar's numbers visible.
    out->Line(at, y - 5, at, y + 3, "predicted");
    out->Line(at, y + kBar - 3, at, y + kBar + 5, "predicted");
    // Moves the mark so that it does not cross the number.
    if (x < at && at < x + kValueWidth) x = at;
  }
  out->Text(x + 8, y + 16, "start", "value",
            Millis(1e3 * row.parts->step) + " ms");
}

}  // namespace

std::string StepPartsChart(const CompareReport& report) {
  constexpr double kRow = 44;
  double limit = 0;
  bool predicted = false;
  for (const CompareRow& row : report.rows) {
    if (row.parts) limit = std::max(limit, 1e3 * row.parts->step);
    if (row.predicted_step_seconds) {
      predicted = true;
      limit = std::max(limit, 1e3 * *row.predicted_step_seconds);
    }
  }
  const double bottom =
      kLegendHeight + kRow * static_cast<double>(report.rows.size());
  Drawing out(bottom + kAxisHeight, "Parts of a step, for each strategy");
  std::vector<Drawing::LegendEntry> legend;
  for (const Part& part : kParts) legend.push_back({part.style, part.name});
  out.Legend(legend, kLabelWidth);
  if (predicted) {
    out.Line(kWidth - 92, 2, kWidth - 92, 16, "predicted");
    out.Text(kWidth - 84, 14, "start", "legend", "predicted");
  }
  const double scale = out.TimeAxis(limit, kLegendHeight, bottom);
  double y = kLegendHeight;
  for (const CompareRow& row : report.rows) {
    out.Text(kLabelWidth - 12, y + 19, "end", "name", row.name);
    out.Text(kLabelWidth - 12, y + 34, "end", "place", PlacesText(row));
    if (row.parts) {
      DrawBar(&out, row, scale, y + 11);
    } else {
      out.Text(
          kLabelWidth + 8, y + 27, "start", "place",
          row.status == "done" ? "no steps after the warm-up" : row.status);
    }
    y += kRow;
  }
  return out.Take();
}

// ---- one step by rank

namespace {

constexpr double kThreadLane = 16;
constexpr double kBesideLane = 7;
constexpr double kRankRow = kThreadLane + kBesideLane + 9;
constexpr double kRunHead = 30;

void DrawRank(Drawing* out, const DrawnRank& rank, double scale, double y) {
  out->Text(kLabelWidth - 12, y + 13, "end", "place",
            absl::StrCat("rank ", rank.rank));
  for (const DrawnSpan& span : rank.spans) {
    const double x = kLabelWidth + span.begin_ms * scale;
    const double width = std::max(0.4, (span.end_ms - span.begin_ms) * scale);
    out->Rect(x, span.beside ? y + kThreadLane + 1 : y, width,
              span.beside ? kBesideLane : kThreadLane, span.activity,
              absl::StrFormat("%s: %.3f to %.3f ms", span.activity,
                              span.begin_ms, span.end_ms));
  }
}

}  // namespace

std::string TimelineChart(const CompareReport& report) {
  double limit = 0, bottom = kLegendHeight;
  for (const CompareRow& row : report.rows) {
    if (!row.drawn) continue;
    bottom +=
        kRunHead + kRankRow * static_cast<double>(row.drawn->ranks.size());
    for (const DrawnRank& rank : row.drawn->ranks) {
      for (const DrawnSpan& span : rank.spans) {
        limit = std::max(limit, span.end_ms);
      }
    }
  }
  if (limit == 0) return "";
  Drawing out(bottom + kAxisHeight, "One step of each strategy, by rank");
  out.Legend(kTimelineLegend, 0);
  const double scale = out.TimeAxis(limit, kLegendHeight, bottom);
  double y = kLegendHeight;
  for (const CompareRow& row : report.rows) {
    if (!row.drawn) continue;
    out.Text(kLabelWidth - 12, y + 20, "end", "name", row.name);
    out.Text(kLabelWidth + 6, y + 20, "start", "place",
             absl::StrCat(PlacesText(row), "; step ", row.drawn->step));
    y += kRunHead;
    for (const DrawnRank& rank : row.drawn->ranks) {
      DrawRank(&out, rank, scale, y);
      y += kRankRow;
    }
  }
  return out.Take();
}

}  // namespace tributary
