// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/page/report_html.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/compare/compare_table.h"
#include "cli/compare/page/charts.h"
#include "cli/compare/page/markup.h"
#include "cli/terminal/format.h"

namespace tributary {
namespace {

// Hues of Okabe and Ito (2008), distinguishable with any kind of colour vision;
// lighter on a dark page.
constexpr char kStyle[] = R"css(
:root { color-scheme: light dark;
  --page: #ffffff; --ink: #1b1f24; --soft: #5b6570; --rule: #d8dde3;
  --grid: #e8ebee; --band: #f5f7f9;
  --forward: #0072b2; --backward: #56b4e9; --exposed: #d55e00;
  --communication: #e69f00; --waiting: #b4bac1; --optimizer: #009e73;
  --data: #cc79a7; --on-dark: #ffffff; --on-light: #1b1f24;
  --l0: #8a929b; --l1: #0072b2; --l2: #d55e00; --l3: #009e73; --l4: #cc79a7;
  --l5: #e69f00; --l6: #56b4e9; --l7: #1b1f24; }
@media (prefers-color-scheme: dark) { :root {
  --page: #14171b; --ink: #e7eaee; --soft: #a2abb6; --rule: #363d46;
  --grid: #262b32; --band: #1b1f25;
  --forward: #3d9ad6; --backward: #8fcdf2; --exposed: #f0813a;
  --communication: #f2b632; --waiting: #858e99; --optimizer: #2bbd94;
  --data: #dd97bd; --on-dark: #10131a; --on-light: #10131a;
  --l0: #a2abb6; --l1: #5cb0e6; --l2: #f0813a; --l3: #2bbd94; --l4: #dd97bd;
  --l5: #f2b632; --l6: #a8d8f5; --l7: #ffffff; } }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1160px; margin: 0 auto; padding: 32px 40px 64px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 4px; }
h2 { font-size: 18px; margin: 40px 0 4px; }
p { margin: 4px 0 12px; max-width: 112ch; }
p.soft, li { color: var(--soft); }
p.result { font-size: 17px; margin: 12px 0 0; }
svg { display: block; width: 100%; height: auto; margin: 12px 0 0;
  font: 12px system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
.scroll { overflow-x: auto; }
.scroll svg { min-width: 680px; }
table { border-collapse: collapse; width: 100%; margin: 12px 0 0;
  font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: 6px 10px; text-align: right; white-space: nowrap; }
th { font-weight: 600; vertical-align: bottom;
  border-bottom: 2px solid var(--rule); }
th span { display: block; font-weight: 400; font-size: 12px;
  color: var(--soft); }
td { border-bottom: 1px solid var(--rule); }
tbody tr:nth-child(even) { background: var(--band); }
th.text, td.text { text-align: left; }
text { fill: var(--ink); }
text.tick, text.place { fill: var(--soft); }
text.name { font-weight: 600; font-size: 13px; }
text.value { font-weight: 600; }
line.axis { stroke: var(--soft); } line.grid { stroke: var(--grid); }
line.predicted { stroke: var(--ink); stroke-width: 2.5; }
text.on-forward, text.on-exposed, text.on-optimizer { fill: var(--on-dark); }
text.on-waiting, text.on-data { fill: var(--on-light); }
.fill-forward { fill: var(--forward); } .fill-backward { fill: var(--backward); }
.fill-exposed { fill: var(--exposed); } .fill-waiting { fill: var(--waiting); }
.fill-communication { fill: var(--communication); }
.fill-optimizer { fill: var(--optimizer); } .fill-data { fill: var(--data); }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.line-0 { stroke: var(--l0); stroke-width: 5; opacity: 0.55; }
.line-1 { stroke: var(--l1); }
.line-2 { stroke: var(--l2); stroke-dasharray: 8 4; }
.line-3 { stroke: var(--l3); stroke-dasharray: 2 4; stroke-width: 2.4; }
.line-4 { stroke: var(--l4); stroke-dasharray: 12 4 2 4; }
.line-5 { stroke: var(--l5); stroke-dasharray: 5 2; }
.line-6 { stroke: var(--l6); stroke-dasharray: 14 6; }
.line-7 { stroke: var(--l7); stroke-dasharray: 1 3; }
)css";

void WriteTable(const CompareTable& table, Markup* out) {
  out->Open("div", {{"class", "scroll"}}).Open("table");
  out->Open("thead").Open("tr");
  for (const CompareTable::Column& column : table.columns) {
    out->Open("th", {{"class", column.text ? "text" : "number"}});
    out->Text(column.name);
    if (!column.unit.empty()) out->Element("span", {}, column.unit);
    out->Close();
  }
  out->Close().Close().Open("tbody");
  for (const std::vector<std::string>& row : table.rows) {
    out->Open("tr");
    for (size_t c = 0; c < row.size(); ++c) {
      out->Element("td", {{"class", table.columns[c].text ? "text" : "number"}},
                   row[c]);
    }
    out->Close();
  }
  out->Close().Close().Close();
}

void WriteHead(const CompareReport& report, Markup* out) {
  out->Open("head");
  out->Empty("meta", {{"charset", "utf-8"}});
  out->Empty("meta", {{"name", "viewport"},
                      {"content", "width=device-width, initial-scale=1"}});
  out->Element("title", {},
               absl::StrCat(report.job_name, ": strategies compared"));
  out->Open("style").Raw(kStyle).Close().Close();
}

std::string JobLine(const CompareReport& report) {
  int64_t steps = 0;
  for (const CompareRow& row : report.rows) steps = std::max(steps, row.steps);
  std::string line;
  if (report.parameters > 0) {
    absl::StrAppend(&line, FormatCount(static_cast<double>(report.parameters)),
                    " parameters, ");
  }
  absl::StrAppend(&line, steps, " steps of ", report.global_batch,
                  " samples, seed ", report.seed, ", Tributary ",
                  report.version);
  return line;
}

// Names the fastest run of several workers; empty: there is none.
std::string ResultLine(const CompareReport& report) {
  const CompareRow* fastest = nullptr;
  for (const CompareRow& row : report.rows) {
    if (row.name == "single" || !row.parts || row.status != "done") continue;
    if (fastest == nullptr || row.parts->step < fastest->parts->step) {
      fastest = &row;
    }
  }
  if (fastest == nullptr) return "";
  const std::string several = absl::StrFormat(
      "Fastest with several workers: %s, %.3g ms per step, %.0f samples/s",
      fastest->name, 1e3 * fastest->parts->step, fastest->samples_per_second);
  const CompareRow& first = report.rows[0];
  if (first.name != "single" || !first.parts || first.parts->step <= 0 ||
      fastest->parts->step <= 0) {
    return several + ".";
  }
  const double gain = first.parts->step / fastest->parts->step;
  if (gain >= 1) {
    return absl::StrFormat("%s, %.2f times as fast as one process.", several,
                           gain);
  }
  return absl::StrFormat(
      "One process is %.2f times as fast as any of these with several workers: "
      "run this job in one process. %s.",
      1 / gain, several);
}

void WriteSection(const std::string& title, const std::string& about,
                  const std::string& chart, Markup* out) {
  if (chart.empty()) return;
  out->Element("h2", {}, title);
  out->Element("p", {{"class", "soft"}}, about);
  out->Open("div", {{"class", "scroll"}});
  out->Raw(chart);
  out->Close();
}

void WriteNotes(const CompareReport& report, Markup* out) {
  std::vector<std::string> notes = report.notes;
  for (const CompareRow& row : report.rows) {
    if (row.status == "done") continue;
    notes.push_back(absl::StrCat(row.folder, ": ", row.status,
                                 row.message.empty() ? "" : ": ", row.message));
  }
  if (notes.empty()) return;
  out->Element("h2", {}, "Notes").Open("ul");
  for (const std::string& note : notes) out->Element("li", {}, note);
  out->Close();
}

void WriteBody(const CompareReport& report, Markup* out) {
  out->Open("body").Open("main");
  out->Element("h1", {},
               absl::StrCat(report.job_name, ": one job, ", report.rows.size(),
                            " runs"));
  out->Element("p", {{"class", "soft"}}, JobLine(report));
  if (const std::string result = ResultLine(report); !result.empty()) {
    out->Element("p", {{"class", "result"}}, result);
  }
  WriteSection(
      "Where the time of a step goes",
      absl::StrCat("The median step after ", report.warmup_steps,
                   " steps of warm-up. Communication counts where no computing "
                   "hides it."),
      StepPartsChart(report), out);
  WriteTable(TimeTable(report), out);
  WriteSection("One step, rank by rank",
               "A step whose time is nearest to the median, all on one scale. "
               "Thick: what the rank itself did. Thin, below it: its messages "
               "under way and its optimizer, beside the computing.",
               TimelineChart(report), out);
  out->Element("h2", {}, "Bytes, memory and result");
  out->Element("p", {{"class", "soft"}},
               "Payloads that a worker sends and receives in a step, the "
               "greatest resident memory of a process, and how far the final "
               "weights are from the single process's: |w - single| / "
               "|single|.");
  WriteTable(ResultTable(report), out);
  WriteSection("Loss",
               "Mean over the samples of a step, before its update. Lines that "
               "lie on each other are the same training.",
               LossChart(report), out);
  WriteSection("Distance from the single process's loss",
               "Of each step, on a logarithmic scale: rounding, where sums are "
               "added in another order; more, where gradients are old.",
               LossDifferenceChart(report), out);
  WriteNotes(report, out);
  out->Close().Close();
}

}  // namespace

std::string ReportHtml(const CompareReport& report) {
  Markup out;
  out.Raw("<!DOCTYPE html>\n").Open("html", {{"lang", "en"}});
  WriteHead(report, &out);
  WriteBody(report, &out);
  out.Close();
  return out.Take();
}

}  // namespace tributary
