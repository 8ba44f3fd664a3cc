// SPDX-License-Identifier: Apache-2.0
#include "cli/checkpoint/checkpoint_diff.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/checkpoint/checkpoint_tensors.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr int64_t kPieceElements = 1 << 18;

template <typename T>
void Note(const std::string& what, const T& a, const T& b,
          std::vector<std::string>* notes) {
  if (a != b) notes->push_back(absl::StrCat(what, ": ", a, " and ", b));
}

std::string Positions(const v1::CheckpointManifest& manifest) {
  return absl::StrJoin(manifest.workers(), " ",
                       [](std::string* out, const v1::WorkerPosition& worker) {
                         absl::StrAppend(out, worker.steps());
                       });
}

void NoteJob(const v1::JobSpec& a, const v1::JobSpec& b,
             std::vector<std::string>* notes) {
  google::protobuf::util::MessageDifferencer differencer;
  std::string report;
  differencer.ReportDifferencesToString(&report);
  if (differencer.Compare(a, b)) return;
  for (const absl::string_view line :
       absl::StrSplit(report, '\n', absl::SkipEmpty())) {
    notes->push_back(absl::StrCat("job, ", line));
  }
}

std::string TensorText(const ParameterSpec& spec) {
  return absl::StrCat(spec.name, " [", absl::StrJoin(spec.shape, ", "), "]");
}

absl::Status CompareTensor(const CheckpointTensors& a, size_t in_a,
                           const CheckpointTensors& b, size_t in_b,
                           TensorDifference* difference) {
  std::vector<float> values_a, values_b;
  for (int64_t at = 0; at < difference->elements; at += kPieceElements) {
    const int64_t n = std::min(kPieceElements, difference->elements - at);
    values_a.resize(static_cast<size_t>(n));
    values_b.resize(static_cast<size_t>(n));
    TRIBUTARY_RETURN_IF_ERROR(a.Read(in_a, at, absl::MakeSpan(values_a)));
    TRIBUTARY_RETURN_IF_ERROR(b.Read(in_b, at, absl::MakeSpan(values_b)));
    CompareElements(values_a.data(), values_b.data(), n, difference);
  }
  return absl::OkStatus();
}

absl::Status CompareTensors(const CheckpointTensors& a,
                            const CheckpointTensors& b,
                            CheckpointDifference* result) {
  std::map<std::string, size_t> in_b;
  for (size_t i = 0; i < b.specs().size(); ++i) in_b[b.specs()[i].name] = i;
  for (size_t i = 0; i < a.specs().size(); ++i) {
    const ParameterSpec& spec = a.specs()[i];
    const auto it = in_b.find(spec.name);
    if (it == in_b.end()) {
      result->differences.push_back("only in A: " + TensorText(spec));
      continue;
    }
    const size_t other = it->second;
    in_b.erase(it);
    if (b.specs()[other].shape != spec.shape) {
      result->differences.push_back("shapes: " + TensorText(spec) + " and " +
                                    TensorText(b.specs()[other]));
      continue;
    }
    TensorDifference& difference = result->tensors.emplace_back();
    difference.name = spec.name;
    difference.elements = spec.size();
    TRIBUTARY_RETURN_IF_ERROR(CompareTensor(a, i, b, other, &difference));
  }
  for (const auto& [name, index] : in_b) {
    result->differences.push_back("only in B: " + TensorText(b.specs()[index]));
  }
  return absl::OkStatus();
}

std::string TensorLine(const TensorDifference& tensor, int width) {
  std::string line =
      absl::StrFormat("%-*s  %10d", width, tensor.name, tensor.elements);
  if (tensor.different == 0) return line + "  equal\n";
  return line + absl::StrFormat("  %10d  %12.4g  %12.4g\n", tensor.different,
                                tensor.max_absolute, tensor.max_relative);
}

}  // namespace

void CompareElements(const float* a, const float* b, int64_t n,
                     TensorDifference* difference) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; ++i) {
    if (std::bit_cast<uint32_t>(a[i]) == std::bit_cast<uint32_t>(b[i])) {
      continue;
    }
    ++difference->different;
    double absolute = kInfinity;
    double relative = kInfinity;
    if (std::isfinite(a[i]) && std::isfinite(b[i])) {
      absolute = std::abs(double{a[i]} - double{b[i]});
      // Zeros with different signs have a difference of 0.
      relative = absolute == 0 ? 0
                               : absolute / std::max(std::abs(double{a[i]}),
                                                     std::abs(double{b[i]}));
    }
    difference->max_absolute = std::max(difference->max_absolute, absolute);
    difference->max_relative = std::max(difference->max_relative, relative);
  }
}

bool CheckpointDifference::equal() const {
  return differences.empty() &&
         std::all_of(tensors.begin(), tensors.end(),
                     [](const auto& tensor) { return tensor.different == 0; });
}

absl::StatusOr<CheckpointDifference> CompareCheckpoints(
    const std::shared_ptr<const CheckpointReader>& a,
    const std::shared_ptr<const CheckpointReader>& b) {
  const v1::CheckpointManifest& of_a = a->manifest();
  const v1::CheckpointManifest& of_b = b->manifest();
  CheckpointDifference result;
  Note("name", of_a.name(), of_b.name(), &result.remarks);
  Note("job id", of_a.job_id(), of_b.job_id(), &result.remarks);
  Note("servers", of_a.files_size(), of_b.files_size(), &result.remarks);
  NoteJob(of_a.job(), of_b.job(), &result.remarks);
  Note("step", of_a.step(), of_b.step(), &result.differences);
  Note("epoch", of_a.epoch(), of_b.epoch(), &result.differences);
  Note("total steps", of_a.total_steps(), of_b.total_steps(),
       &result.differences);
  Note("steps of the ranks", Positions(of_a), Positions(of_b),
       &result.differences);
  TRIBUTARY_ASSIGN_OR_RETURN(const CheckpointTensors in_a,
                             CheckpointTensors::Of(a, /*with_state=*/true));
  TRIBUTARY_ASSIGN_OR_RETURN(const CheckpointTensors in_b,
                             CheckpointTensors::Of(b, /*with_state=*/true));
  TRIBUTARY_RETURN_IF_ERROR(CompareTensors(in_a, in_b, &result));
  return result;
}

std::string DifferenceText(const CheckpointDifference& difference) {
  std::string text;
  for (const std::string& remark : difference.remarks) {
    absl::StrAppend(&text, remark, "\n");
  }
  for (const std::string& line : difference.differences) {
    absl::StrAppend(&text, line, "\n");
  }
  int width = 6;
  for (const TensorDifference& tensor : difference.tensors) {
    width = std::max(width, static_cast<int>(tensor.name.size()));
  }
  absl::StrAppendFormat(&text, "%-*s  %10s  %10s  %12s  %12s\n", width,
                        "tensor", "elements", "different", "absolute",
                        "relative");
  int64_t different = 0;
  for (const TensorDifference& tensor : difference.tensors) {
    absl::StrAppend(&text, TensorLine(tensor, width));
    different += tensor.different > 0;
  }
  if (difference.equal()) return text + "equal\n";
  absl::StrAppend(
      &text, "different: ", different, " of ", difference.tensors.size(),
      " tensors",
      difference.differences.empty() ? "\n" : ", and what stands above them\n");
  return text;
}

}  // namespace tributary
