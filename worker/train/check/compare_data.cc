// SPDX-License-Identifier: Apache-2.0
#include "worker/train/check/compare_data.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/job/job_file.h"
#include "common/job/sources/source_kind.h"
#include "common/status/status_macros.h"
#include "worker/train/data/batches/batch.h"

namespace tributary {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kRowsAtOnce = 256;
constexpr int kTarget = -1;

Json SetRecord(const Dataset& set) {
  return {
      {"rows", set.rows()},
      {"checksum", absl::StrCat(absl::Hex(set.checksum(), absl::kZeroPad8))}};
}

absl::StatusOr<TrainTest> OpenDataOfFile(const std::string& path) {
  TRIBUTARY_ASSIGN_OR_RETURN(v1::JobSpec job, ReadModelJob(path, {}));
  v1::DataSpec* data = job.mutable_data();
  SetNormalize(nullptr, data->mutable_train());
  if (data->has_test()) SetNormalize(nullptr, data->mutable_test());
  if (data->validation().has_source()) {
    SetNormalize(nullptr, data->mutable_validation()->mutable_source());
  }
  return OpenData(*data, TargetKindOf(job.training().loss()));
}

// Adds row, column and values of the first value that differs. Returns false if
// none does.
template <typename T>
bool FindDifference(int64_t first_row, int64_t width, bool targets, const T* a,
                    const T* b, int64_t n, Json* found) {
  for (int64_t i = 0; i < n; ++i) {
    // Bits decide. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
    if (std::memcmp(a + i, b + i, sizeof(T)) == 0) continue;
    (*found)["row"] = first_row + i / width;
    (*found)["column"] = targets ? kTarget : i % width;
    (*found)["a"] = a[i];
    (*found)["b"] = b[i];
    return true;
  }
  return false;
}

// Compares the same rows of two sets of equal shape.
bool CompareRows(const Batch& a, const Batch& b, int64_t first_row,
                 Json* found) {
  const auto width = [&](size_t size) {
    return std::max<int64_t>(1, static_cast<int64_t>(size) / a.rows);
  };
  const auto size = static_cast<int64_t>(a.features.size());
  Json feature = *found, label = *found, target = *found;
  const bool features =
      FindDifference(first_row, width(a.features.size()), false,
                     a.features.data(), b.features.data(), size, &feature);
  const bool labels = FindDifference(
      first_row, width(a.labels.size()), true, a.labels.data(), b.labels.data(),
      static_cast<int64_t>(a.labels.size()), &label);
  const bool targets = FindDifference(
      first_row, width(a.targets.size()), true, a.targets.data(),
      b.targets.data(), static_cast<int64_t>(a.targets.size()), &target);
  if (!features && !labels && !targets) return false;
  if (targets) label = target;
  const bool first_is_label =
      (labels || targets) && (!features || label["row"] < feature["row"]);
  *found = first_is_label ? label : feature;
  return true;
}

// Fills `found` with the first difference of the two sets. Returns false if
// there is none.
absl::StatusOr<bool> CompareSets(const char* name, const Dataset* a,
                                 const Dataset* b, Json* found) {
  *found = {{"set", name}};
  if (a == nullptr && b == nullptr) return false;
  if (a == nullptr || b == nullptr) {
    (*found)["what"] = "only one of the jobs has this set";
    return true;
  }
  if (a->feature_shape() != b->feature_shape() ||
      a->target_kind() != b->target_kind() ||
      a->target_width() != b->target_width()) {
    (*found)["what"] =
        absl::StrCat("samples are ", ShapeText(a->feature_shape()), " and ",
                     ShapeText(b->feature_shape()));
    return true;
  }
  const int64_t rows = std::min(a->rows(), b->rows());
  Batch of_a, of_b;
  for (int64_t at = 0; at < rows; at += kRowsAtOnce) {
    std::vector<int64_t> numbers(
        static_cast<size_t>(std::min(kRowsAtOnce, rows - at)));
    std::iota(numbers.begin(), numbers.end(), at);
    TRIBUTARY_RETURN_IF_ERROR(a->Fetch(numbers, &of_a));
    TRIBUTARY_RETURN_IF_ERROR(b->Fetch(numbers, &of_b));
    if (CompareRows(of_a, of_b, at, found)) return true;
  }
  if (a->rows() == b->rows()) return false;
  (*found)["what"] = absl::StrCat(a->rows(), " and ", b->rows(), " rows");
  return true;
}

}  // namespace

std::string DataRecord(const TrainTest& data) {
  Json record = {{"train", SetRecord(*data.train)}};
  if (data.validation != nullptr) {
    record["validation"] = SetRecord(*data.validation);
  }
  if (data.test != nullptr) record["test"] = SetRecord(*data.test);
  return record.dump();
}

absl::StatusOr<std::string> CompareDataOfFiles(const std::string& job_path_a,
                                               const std::string& job_path_b) {
  TRIBUTARY_ASSIGN_OR_RETURN(const TrainTest a, OpenDataOfFile(job_path_a));
  TRIBUTARY_ASSIGN_OR_RETURN(const TrainTest b, OpenDataOfFile(job_path_b));
  Json found;
  TRIBUTARY_ASSIGN_OR_RETURN(
      bool differ, CompareSets("train", a.train.get(), b.train.get(), &found));
  if (!differ) {
    TRIBUTARY_ASSIGN_OR_RETURN(differ,
                               CompareSets("validation", a.validation.get(),
                                           b.validation.get(), &found));
  }
  if (!differ) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        differ, CompareSets("test", a.test.get(), b.test.get(), &found));
  }
  return differ ? found.dump() : std::string("{}");
}

}  // namespace tributary
