// SPDX-License-Identifier: Apache-2.0
#include "worker/train/predict/prediction_writer.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/status/status_macros.h"
#include "worker/train/model/decided_class.h"
#include "worker/train/predict/predictor.h"

namespace tributary {
namespace {

constexpr size_t kBufferBytes = 256 << 10;

std::string CsvText(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

// Bytes that are not UTF-8 become U+FFFD.
std::string JsonText(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false,
                                   nlohmann::json::error_handler_t::replace);
}

// JSON has no NaN and no infinity.
std::string JsonNumber(double value) {
  return std::isfinite(value) ? FloatText(value) : "null";
}

}  // namespace

std::string FloatText(double value) { return absl::StrFormat("%.9g", value); }

// The text of a CSV field; empty if `value` is not finite.
std::string FieldText(double value) {
  return std::isfinite(value) ? FloatText(value) : "";
}

void ProbabilitiesOf(v1::OutputKind kind, absl::Span<const float> outputs,
                     std::vector<double>* probabilities) {
  probabilities->clear();
  if (kind == v1::OUTPUT_KIND_BINARY) {
    const double second = 1 / (1 + std::exp(-static_cast<double>(outputs[0])));
    *probabilities = {1 - second, second};
    return;
  }
  const double largest = *std::max_element(outputs.begin(), outputs.end());
  double sum = 0;
  for (float logit : outputs) {
    probabilities->push_back(std::exp(logit - largest));
    sum += probabilities->back();
  }
  for (double& p : *probabilities) p /= sum;
}

PredictionWriter::PredictionWriter(const v1::ModelRecord& record,
                                   Options options)
    : record_(record), options_(std::move(options)) {
  const v1::Preprocessing& preprocessing = record.preprocessing();
  named_ = preprocessing.has_text() || preprocessing.class_names_size() > 0;
  const int64_t classes = record.output() == v1::OUTPUT_KIND_NUMBERS ? 0
                          : record.output() == v1::OUTPUT_KIND_BINARY
                              ? 2
                              : options_.outputs;
  for (int64_t i = 0; i < classes; ++i) {
    names_.push_back(ClassName(record, i));
  }
}

absl::StatusOr<std::unique_ptr<PredictionWriter>> PredictionWriter::Create(
    const v1::ModelRecord& record, const Options& options) {
  std::unique_ptr<PredictionWriter> writer(
      new PredictionWriter(record, options));
  if (!options.path.empty()) {
    TRIBUTARY_ASSIGN_OR_RETURN(writer->file_,
                               AtomicFile::CreateOutput(options.path));
  }
  if (options.format == PredictionFormat::kCsv) writer->AppendHeader();
  return writer;
}

void PredictionWriter::AppendHeader() {
  if (options_.positions) absl::StrAppend(&buffer_, "row,position,");
  if (record_.preprocessing().has_text()) absl::StrAppend(&buffer_, "token,");
  absl::StrAppend(&buffer_, "prediction");
  if (options_.top && !names_.empty()) {
    absl::StrAppend(&buffer_, ",probability");
  } else {
    for (const std::string& name : names_) {
      absl::StrAppend(&buffer_, ",", CsvText("probability_" + name));
    }
  }
  absl::StrAppend(&buffer_, "\n");
}

void PredictionWriter::AppendCsv(const Place& place,
                                 const std::string& prediction) {
  if (options_.positions) {
    absl::StrAppend(&buffer_, place.row, ",", place.position, ",");
  }
  if (place.token != nullptr) {
    absl::StrAppend(&buffer_, CsvText(*place.token), ",");
  }
  // Quotes an empty field that is alone: many programs skip empty lines.
  const bool alone =
      names_.empty() && !options_.positions && place.token == nullptr;
  absl::StrAppend(&buffer_,
                  alone && prediction.empty() ? "\"\"" : CsvText(prediction));
  if (options_.top && !names_.empty()) {
    absl::StrAppend(&buffer_, ",", FieldText(DecidedProbability()));
  } else {
    for (size_t i = 0; i < names_.size(); ++i) {
      absl::StrAppend(&buffer_, ",", FieldText(probabilities_[i]));
    }
  }
  absl::StrAppend(&buffer_, "\n");
}

void PredictionWriter::AppendJson(const Place& place,
                                  const std::string& prediction) {
  absl::StrAppend(&buffer_, "{");
  if (options_.positions) {
    absl::StrAppend(&buffer_, "\"row\": ", place.row,
                    ", \"position\": ", place.position, ", ");
  }
  if (place.token != nullptr) {
    absl::StrAppend(&buffer_, "\"token\": ", JsonText(*place.token), ", ");
  }
  absl::StrAppend(&buffer_, "\"prediction\": ",
                  decided_ == kUndecided ? "null"
                  : named_               ? JsonText(prediction)
                                         : prediction);
  if (options_.top && !names_.empty()) {
    absl::StrAppend(&buffer_,
                    ", \"probability\": ", JsonNumber(DecidedProbability()));
  } else if (!names_.empty()) {
    absl::StrAppend(&buffer_, ", \"probabilities\": {");
    for (size_t i = 0; i < names_.size(); ++i) {
      absl::StrAppend(&buffer_, i == 0 ? "" : ", ", JsonText(names_[i]), ": ",
                      JsonNumber(probabilities_[i]));
    }
    absl::StrAppend(&buffer_, "}");
  }
  absl::StrAppend(&buffer_, "}\n");
}

double PredictionWriter::DecidedProbability() const {
  return decided_ == kUndecided ? std::numeric_limits<double>::quiet_NaN()
                                : probabilities_[decided_];
}

absl::Status PredictionWriter::Write(const Place& place,
                                     absl::Span<const float> outputs) {
  const bool json = options_.format == PredictionFormat::kJson;
  std::string prediction;
  if (names_.empty()) {
    const bool finite = std::isfinite(outputs[0]);
    if (!finite) ++undecided_;
    decided_ = finite ? 0 : kUndecided;
    if (finite) prediction = FloatText(outputs[0]);
  } else {
    ProbabilitiesOf(record_.output(), outputs, &probabilities_);
    decided_ = record_.output() == v1::OUTPUT_KIND_BINARY
                   ? DecidedOfTwo(outputs[0])
                   : DecidedClass(outputs);
    if (decided_ == kUndecided) {
      ++undecided_;
    } else {
      prediction = names_[decided_];
    }
  }
  json ? AppendJson(place, prediction) : AppendCsv(place, prediction);
  return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
}

absl::Status PredictionWriter::Flush() {
  absl::Status written;
  if (file_ != nullptr) {
    written = file_->Append(buffer_);
  } else if (std::fwrite(buffer_.data(), 1, buffer_.size(), stdout) !=
                 buffer_.size() ||
             std::fflush(stdout) != 0) {
    written = absl::UnavailableError(
        absl::StrCat("cannot write the predictions: ", std::strerror(errno)));
  }
  buffer_.clear();
  return written;
}

absl::Status PredictionWriter::Finish() {
  TRIBUTARY_RETURN_IF_ERROR(Flush());
  return file_ == nullptr ? absl::OkStatus() : file_->Commit();
}

}  // namespace tributary
