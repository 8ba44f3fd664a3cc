// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/page/report_html.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/compare/compare_table.h"
#include "cli/compare/page/charts.h"
#include "cli/compare/page/markup.h"
#include "cli/terminal/format.h"
#include "coordinator/page/status_page.h"

namespace tributary {
namespace {

// The styles of this report, beside PageStyle().
constexpr char kStyle[] = R"css(
p.result { font-size: 17px; margin: 12px 0 0; }
.scroll svg { min-width: 680px; }
text.place { fill: var(--soft); }
text.name { font-weight: 600; font-size: 13px; }
text.value { font-weight: 600; }
line.predicted { stroke: var(--ink); stroke-width: 2.5; }
text.on-forward, text.on-exposed, text.on-optimizer { fill: var(--on-dark); }
text.on-waiting, text.on-data { fill: var(--on-light); }
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
  out->Open("style").Raw(PageStyle()).Raw(kStyle).Close().Close();
}

std::string JobLine(const CompareReport& report) {
  int64_t steps = 0;
  for (const CompareRow& row : report.rows) steps = std::max(steps, row.steps);
  std::string line;
  if (report.parameters > 0) {
    absl::StrAppend(&line, FormatCount(static_cast<double>(report.parameters)),
                    " parameters, ");
  }
  absl::StrAppend(&line, steps, " steps");
  if (report.one_job) {
    absl::StrAppend(&line, " of ", report.global_batch, " samples, seed ",
                    report.seed);
  }
  absl::StrAppend(&line, ", Tributary ", report.version);
  return line;
}

// Names the fastest run of several workers; empty: there is none.
std::string ResultLine(const CompareReport& report) {
  if (!report.one_job) return "";
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
  out->Element(
      "h1", {},
      absl::StrCat(report.job_name, report.one_job ? ": one job, " : ": ",
                   report.rows.size(), " runs",
                   report.one_job ? "" : " with other settings"));
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
  out->Element(
      "p", {{"class", "soft"}},
      absl::StrCat("Payloads that a worker sends and receives in a step, the "
                   "greatest resident memory of a process",
                   report.one_job
                       ? ", and how far the final weights are from the single "
                         "process's: |w - single| / |single|."
                       : "."));
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
