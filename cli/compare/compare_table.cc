// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/compare_table.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/terminal/format.h"

namespace tributary {
namespace {

constexpr char kNotKnown[] = "-";
constexpr double kKiB = 1024;
constexpr double kMiB = 1024 * 1024;

// Adds columns to a table that has one row per run of the report.
class TableMaker {
 public:
  TableMaker(const CompareReport& report, std::string title) : report_(report) {
    table_.title = std::move(title);
    table_.rows.resize(report.rows.size());
  }

  template <typename CellOf>
  void Add(CompareTable::Column column, CellOf cell) {
    table_.columns.push_back(std::move(column));
    for (size_t i = 0; i < report_.rows.size(); ++i) {
      table_.rows[i].push_back(cell(report_.rows[i]));
    }
  }

  // A column of milliseconds; only rows with steps have a value.
  template <typename SecondsOf>
  void AddMillis(const char* name, int decimals, SecondsOf seconds) {
    Add({name, "ms"}, [&](const CompareRow& row) -> std::string {
      if (!row.parts) return kNotKnown;
      const std::optional<double> value = seconds(row);
      return value ? absl::StrFormat("%.*f", decimals, 1e3 * *value)
                   : kNotKnown;
    });
  }

  CompareTable Take() { return std::move(table_); }

 private:
  const CompareReport& report_;
  CompareTable table_;
};

// Decimals that show three digits of the shortest step.
int MillisDecimals(const CompareReport& report) {
  double least = 1e9;
  for (const CompareRow& row : report.rows) {
    if (row.parts) least = std::min(least, 1e3 * row.parts->step);
  }
  return least < 10 ? 2 : least < 100 ? 1 : 0;
}

void AddPlaces(TableMaker* maker) {
  maker->Add({"strategy", "", /*text=*/true},
             [](const CompareRow& row) { return row.name; });
  maker->Add({"workers", ""},
             [](const CompareRow& row) { return absl::StrCat(row.workers); });
  maker->Add({"servers", ""},
             [](const CompareRow& row) { return absl::StrCat(row.servers); });
}

std::string Bytes(double bytes, double unit) {
  return absl::StrFormat("%.1f", bytes / unit);
}

std::string PeakText(const std::optional<uint64_t>& bytes) {
  return bytes ? absl::StrFormat("%.0f", static_cast<double>(*bytes) / kMiB)
               : kNotKnown;
}

std::string MetricCell(const std::optional<double>& value) {
  return value ? FormatMetric(*value) : kNotKnown;
}

const CompareRow* SingleOf(const CompareReport& report) {
  const CompareRow& first = report.rows.front();
  return first.name == "single" && first.parts ? &first : nullptr;
}

}  // namespace

CompareTable TimeTable(const CompareReport& report) {
  TableMaker maker(report,
                   absl::StrCat("Time of a step: the median after ",
                                report.warmup_steps, " steps of warm-up"));
  const int decimals = MillisDecimals(report);
  AddPlaces(&maker);
  maker.AddMillis("step", decimals,
                  [](const CompareRow& row) { return row.parts->step; });
  if (std::any_of(report.rows.begin(), report.rows.end(),
                  [](const CompareRow& row) {
                    return row.predicted_step_seconds.has_value();
                  })) {
    maker.AddMillis("predicted", decimals, [](const CompareRow& row) {
      return row.predicted_step_seconds;
    });
  }
  maker.AddMillis("compute", decimals, [](const CompareRow& row) {
    return row.parts->data + row.parts->compute;
  });
  maker.AddMillis("exposed comm.", decimals, [](const CompareRow& row) {
    return row.parts->communication;
  });
  maker.AddMillis("waiting", decimals,
                  [](const CompareRow& row) { return row.parts->waiting; });
  maker.AddMillis("optimizer", decimals,
                  [](const CompareRow& row) { return row.parts->optimizer; });
  maker.Add({"samples", "1/s"}, [](const CompareRow& row) -> std::string {
    if (!row.parts) return kNotKnown;
    return absl::StrFormat("%.0f", row.samples_per_second);
  });
  if (!report.one_job) return maker.Take();
  const CompareRow* const single = SingleOf(report);
  maker.Add(
      {"speed", "single = 1"}, [single](const CompareRow& row) -> std::string {
        if (single == nullptr || !row.parts || row.parts->step <= 0) {
          return kNotKnown;
        }
        return absl::StrFormat("%.2f", single->parts->step / row.parts->step);
      });
  return maker.Take();
}

CompareTable ResultTable(const CompareReport& report) {
  TableMaker maker(report, "Bytes, memory and result");
  double most_bytes = 0;
  for (const CompareRow& row : report.rows) {
    most_bytes = std::max({most_bytes, row.bytes_sent, row.bytes_received});
  }
  const double unit = most_bytes < kMiB ? kKiB : kMiB;
  const char* const per_step = unit == kKiB ? "KiB/rank/step" : "MiB/rank/step";
  AddPlaces(&maker);
  maker.Add({"sent", per_step}, [unit](const CompareRow& row) {
    return Bytes(row.bytes_sent, unit);
  });
  maker.Add({"received", per_step}, [unit](const CompareRow& row) {
    return Bytes(row.bytes_received, unit);
  });
  maker.Add({"worker peak", "MiB"}, [](const CompareRow& row) {
    return PeakText(row.worker_peak_bytes);
  });
  maker.Add({"server peak", "MiB"}, [](const CompareRow& row) {
    return PeakText(row.server_peak_bytes);
  });
  maker.Add({"loss", "at the end"},
            [](const CompareRow& row) { return MetricCell(row.loss); });
  if (!report.metric_name.empty()) {
    maker.Add(
        {absl::StrCat(report.metric_set, report.metric_set.empty() ? "" : " ",
                      report.metric_name),
         "at the end"},
        [](const CompareRow& row) { return MetricCell(row.metric); });
  }
  if (!report.one_job) return maker.Take();
  maker.Add({"distance", "relative"}, [](const CompareRow& row) -> std::string {
    if (!row.weight_distance) return kNotKnown;
    return *row.weight_distance == 0
               ? "0"
               : absl::StrFormat("%.1e", *row.weight_distance);
  });
  return maker.Take();
}

namespace {

void AppendCells(const std::vector<std::string>& cells,
                 const std::vector<CompareTable::Column>& columns,
                 const std::vector<int>& widths, std::string* text) {
  std::string line;
  for (size_t c = 0; c < cells.size(); ++c) {
    const int width = columns[c].text ? -widths[c] : widths[c];
    absl::StrAppendFormat(&line, "%s%*s", c == 0 ? "" : "  ", width, cells[c]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  absl::StrAppend(text, line, "\n");
}

void AppendTable(const CompareTable& table, std::string* text) {
  std::vector<std::string> names, units;
  std::vector<int> widths;
  for (const CompareTable::Column& column : table.columns) {
    names.push_back(column.name);
    units.push_back(column.unit);
    widths.push_back(
        static_cast<int>(std::max(column.name.size(), column.unit.size())));
  }
  for (const std::vector<std::string>& row : table.rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], static_cast<int>(row[c].size()));
    }
  }
  absl::StrAppend(text, table.title, "\n");
  AppendCells(names, table.columns, widths, text);
  AppendCells(units, table.columns, widths, text);
  for (const std::vector<std::string>& row : table.rows) {
    AppendCells(row, table.columns, widths, text);
  }
}

}  // namespace

std::string ReportText(const CompareReport& report) {
  std::string text;
  AppendTable(TimeTable(report), &text);
  text += "\n";
  AppendTable(ResultTable(report), &text);
  for (const CompareRow& row : report.rows) {
    if (row.status == "done") continue;
    absl::StrAppend(&text, "\n", row.folder, ": ", row.status,
                    row.message.empty() ? "" : ": ", row.message, "\n");
  }
  if (!report.notes.empty()) text += "\n";
  for (const std::string& note : report.notes) {
    absl::StrAppend(&text, note, "\n");
  }
  return text;
}

}  // namespace tributary
