// SPDX-License-Identifier: Apache-2.0
// The report page is well-formed and loads nothing from elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/compare/page/report_html.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns the first error that an XML parser would report; empty: none.
std::string Complaint(const std::string& page) {
  std::vector<std::string> open;
  size_t at = page.find('\n');  // behind the document type
  while (at < page.size()) {
    const size_t tag = page.find('<', at);
    if (tag == std::string::npos) break;
    const size_t end = page.find('>', tag);
    if (end == std::string::npos) return "a tag does not end";
    const std::string text = page.substr(tag + 1, end - tag - 1);
    at = end + 1;
    if (text.find('<') != std::string::npos) return "< within <" + text;
    const std::string name = text.substr(0, text.find_first_of(" /"));
    if (text[0] == '/') {
      if (open.empty() || open.back() != text.substr(1)) {
        return "<" + text + "> closes " + (open.empty() ? "" : open.back());
      }
      open.pop_back();
    } else if (text.back() != '/') {
      open.push_back(name);
    }
    if (std::count(text.begin(), text.end(), '"') % 2 != 0) {
      return "a quotation mark is missing in <" + text + ">";
    }
  }
  for (size_t a = page.find('&'); a != std::string::npos;
       a = page.find('&', a + 1)) {
    const std::string entity = page.substr(a, page.find(';', a) - a + 1);
    if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" &&
        entity != "&quot;") {
      return "unknown " + entity.substr(0, 20);
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is left open";
}

TEST(ComplaintTest, FindsWhatAParserWouldFind) {
  EXPECT_EQ(Complaint("x\n<a><b/></a>"), "");
  EXPECT_NE(Complaint("x\n<a><b></a>"), "");
  EXPECT_NE(Complaint("x\n<a>"), "");
  EXPECT_NE(Complaint("x\n<a b=\"1></a>"), "");
  EXPECT_NE(Complaint("x\n<a>1 &lt 2</a>"), "");
}

CompareRow Row(const std::string& name, int workers, double step_ms) {
  CompareRow row;
  row.name = name;
  row.workers = workers;
  row.servers = 1;
  row.folder = "runs/" + name;
  row.status = "done";
  row.parts = StepParts{.step = step_ms / 1e3,
                        .data = 0.0001,
                        .compute = step_ms / 2e3 - 0.0001,
                        .communication = step_ms / 4e3,
                        .waiting = step_ms / 8e3,
                        .optimizer = step_ms / 8e3};
  row.loss = 0.5;
  for (int step = 1; step <= 20; ++step) {
    row.losses.push_back({step, 1.0 / step + 1e-6 * workers});
  }
  DrawnStep& drawn = row.drawn.emplace();
  drawn.step = 12;
  for (int rank = 0; rank < workers; ++rank) {
    drawn.ranks.push_back({rank,
                           {{"forward", false, 0, 2},
                            {"backward", false, 2, 4.5},
                            {"communication", true, 3, step_ms}}});
  }
  return row;
}

CompareReport ComparedJobs() {
  CompareReport report;
  report.job_name = "a <small> job & \"more\"";
  report.global_batch = 64;
  report.warmup_steps = 3;
  report.version = "1.2";
  report.metric_name = "accuracy";
  report.rows = {Row("single", 1, 8), Row("parameter_server", 2, 5),
                 Row("parameter_server:async", 2, 6)};
  report.rows[2].status = "failed";
  report.rows[2].message = "worker 1 said <gone>";
  report.notes = {"left out: \"all_reduce\" & others"};
  return report;
}

TEST(ReportPageTest, IsWellFormedWhateverNamesSay) {
  const std::string page = ReportHtml(ComparedJobs());
  EXPECT_EQ(Complaint(page), "");
  EXPECT_THAT(page, HasSubstr("a &lt;small&gt; job &amp; &quot;more&quot;"));
  EXPECT_THAT(page, HasSubstr("worker 1 said &lt;gone&gt;"));
}

TEST(ReportPageTest, NeedsNothingFromElsewhere) {
  const std::string page = ReportHtml(ComparedJobs());
  for (const char* from : {"src=", "href=", "url(", "@import", "<script"}) {
    EXPECT_THAT(page, Not(HasSubstr(from)));
  }
}

TEST(ReportPageTest, HasEveryChartAndTheFastestRunThatIsDone) {
  const std::string page = ReportHtml(ComparedJobs());
  for (const char* piece :
       {"Where the time of a step goes", "One step, rank by rank", "rank 1",
        "Distance from the single process's loss", "step 12",
        "Fastest with several workers: parameter_server, 5 ms per step, 0 "
        "samples/s, 1.60 times as fast as one process."}) {
    EXPECT_THAT(page, HasSubstr(piece));
  }
}

TEST(ReportPageTest, SaysPlainlyThatOneProcessIsFaster) {
  CompareReport report = ComparedJobs();
  report.rows[0].parts->step = 0.0025;
  EXPECT_THAT(
      ReportHtml(report),
      HasSubstr("One process is 2.00 times as fast as any of these with "
                "several workers: run this job in one process."));
}

TEST(ReportPageTest, ARunWithoutStepsIsARowAllTheSame) {
  CompareReport report = ComparedJobs();
  for (CompareRow& row : report.rows) {
    row.parts.reset();
    row.drawn.reset();
    row.losses.clear();
    row.status = "failed";
  }
  const std::string page = ReportHtml(report);
  EXPECT_EQ(Complaint(page), "");
  EXPECT_THAT(page, Not(HasSubstr("Fastest")));
  EXPECT_THAT(page, Not(HasSubstr("<h2>Loss")));
}

}  // namespace
}  // namespace tributary
