// SPDX-License-Identifier: Apache-2.0
#include "worker/train/predict/confusion.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status/utf8.h"
#include "worker/train/model/decided_class.h"
#include "worker/train/predict/prediction_writer.h"
#include "worker/train/predict/predictor.h"

namespace tributary {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kListed = 20;     // confusions
constexpr size_t kNameBytes = 24;  // of a class

// A class's name that keeps to one line.
std::string Shown(const std::string& name) {
  return IsUtf8(name) ? absl::Utf8SafeCEscape(CutUtf8(name, kNameBytes))
                      : absl::CHexEscape(name.substr(0, kNameBytes));
}

std::string MatrixText(const Confusion& confusion) {
  const int64_t classes = confusion.classes();
  size_t width = 4;
  for (int64_t i = 0; i < classes; ++i) {
    width = std::max(width, Shown(confusion.name(i)).size());
    for (int64_t j = 0; j < classes; ++j) {
      width = std::max(width, absl::StrCat(confusion.count(i, j)).size());
    }
  }
  const int column = static_cast<int>(width);
  std::string text = absl::StrFormat("%*s", column, "");
  for (int64_t j = 0; j < classes; ++j) {
    absl::StrAppendFormat(&text, " %*s", column, Shown(confusion.name(j)));
  }
  text += "\n";
  for (int64_t i = 0; i < classes; ++i) {
    absl::StrAppendFormat(&text, "%*s", column, Shown(confusion.name(i)));
    for (int64_t j = 0; j < classes; ++j) {
      absl::StrAppendFormat(&text, " %*d", column, confusion.count(i, j));
    }
    text += "\n";
  }
  return text;
}

std::string ListText(const Confusion& confusion) {
  std::vector<std::tuple<uint64_t, int64_t, int64_t>> wrong;
  for (int64_t i = 0; i < confusion.classes(); ++i) {
    for (int64_t j = 0; j < confusion.classes(); ++j) {
      if (i != j && confusion.count(i, j) > 0) {
        wrong.emplace_back(confusion.count(i, j), -i, -j);
      }
    }
  }
  std::sort(wrong.rbegin(), wrong.rend());
  if (wrong.size() > kListed) wrong.resize(kListed);
  std::string text;
  for (const auto& [count, i, j] : wrong) {
    absl::StrAppendFormat(&text, "%10d  \"%s\" taken for \"%s\"\n", count,
                          Shown(confusion.name(-i)), Shown(confusion.name(-j)));
  }
  return text;
}

}  // namespace

Confusion::Confusion(const v1::ModelRecord& record, int64_t outputs)
    : kind_(record.output()), outputs_(outputs) {
  const int64_t classes = kind_ == v1::OUTPUT_KIND_NUMBERS  ? 0
                          : kind_ == v1::OUTPUT_KIND_BINARY ? 2
                                                            : outputs;
  if (classes > kMaxClasses) return;
  for (int64_t i = 0; i < classes; ++i) names_.push_back(ClassName(record, i));
  counts_.resize(classes * classes);
}

void Confusion::Add(const Batch& batch, absl::Span<const float> logits) {
  if (empty()) return;
  const bool binary = kind_ == v1::OUTPUT_KIND_BINARY;
  const int64_t values = static_cast<int64_t>(logits.size()) / outputs_;
  for (int64_t v = 0; v < values; ++v) {
    const absl::Span<const float> row = logits.subspan(v * outputs_, outputs_);
    const int64_t label = binary ? batch.targets[v] >= 0.5f : batch.labels[v];
    const int64_t predicted = binary ? DecidedOfTwo(row[0]) : DecidedClass(row);
    ++(predicted == kUndecided ? undecided_
                               : counts_[label * classes() + predicted]);
  }
}

std::string ReportText(const EvaluationReport& report,
                       const Confusion& confusion) {
  std::string text = absl::StrCat(
      "data        ", report.data,
      report.more_files == 0
          ? ""
          : absl::StrCat(" and ", report.more_files, " more ",
                         report.more_files == 1 ? "file" : "files"),
      ", ", report.rows, " rows\nweights     ", report.weights, "\n");
  for (const auto& [name, value] : report.metrics) {
    // StrCat writes NaN as "nan", whatever its sign.
    absl::StrAppendFormat(&text, "%-11s %s\n", name, absl::StrCat(value));
  }
  if (confusion.undecided() > 0) {
    absl::StrAppendFormat(
        &text, "undecided   %d (outputs that are not numbers count as wrong)\n",
        confusion.undecided());
  }
  if (confusion.empty()) return text;
  if (confusion.classes() <= kMaxShown) {
    absl::StrAppend(&text, "\nlabel (down) and prediction (across)\n",
                    MatrixText(confusion));
  } else {
    absl::StrAppend(&text, "\nmost frequent confusions\n", ListText(confusion));
  }
  return text;
}

std::string ReportJson(const EvaluationReport& report,
                       const Confusion& confusion) {
  Json json = {{"data", report.data},
               {"weights", report.weights},
               {"rows", report.rows}};
  if (report.more_files > 0) json["more_files"] = report.more_files;
  json["metrics"] = Json::object();
  for (const auto& [name, value] : report.metrics) {
    json["metrics"][name] = value;
  }
  if (confusion.undecided() > 0) json["undecided"] = confusion.undecided();
  if (!confusion.empty()) {
    json["classes"] = Json::array();
    json["confusion"] = Json::array();
    for (int64_t i = 0; i < confusion.classes(); ++i) {
      json["classes"].push_back(confusion.name(i));
      Json row = Json::array();
      for (int64_t j = 0; j < confusion.classes(); ++j) {
        row.push_back(confusion.count(i, j));
      }
      json["confusion"].push_back(std::move(row));
    }
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tributary
