// SPDX-License-Identifier: Apache-2.0
#include "worker/train/pipeline/micro_batch.h"

#include <algorithm>

#include "common/base/check.h"

namespace tributary {

std::vector<MicroBatch> CutBatch(const Batch& batch, int count,
                                 int64_t step_samples) {
  TRIBUTARY_CHECK(count > 0);
  std::vector<MicroBatch> parts;
  if (batch.rows == 0) return parts;
  if (step_samples == 0) step_samples = batch.rows;
  const int64_t sample =
      static_cast<int64_t>(batch.features.size()) / batch.rows;
  const int64_t labels = static_cast<int64_t>(batch.labels.size()) / batch.rows;
  const int64_t values =
      static_cast<int64_t>(batch.targets.size()) / batch.rows;
  const int64_t number = std::min<int64_t>(count, batch.rows);
  for (int64_t part = 0; part < number; ++part) {
    const int64_t begin = batch.rows * part / number;
    const int64_t end = batch.rows * (part + 1) / number;
    MicroBatch& cut = parts.emplace_back();
    cut.rows = end - begin;
    cut.context = {.training = true,
                   .step = batch.step,
                   .first_row = batch.first_row + begin * batch.row_stride,
                   .row_stride = batch.row_stride,
                   .step_share = static_cast<double>(cut.rows) /
                                 static_cast<double>(step_samples)};
    cut.features = batch.features.data() + begin * sample;
    if (labels > 0) cut.targets.labels = batch.labels.data() + begin * labels;
    if (values > 0) cut.targets.values = batch.targets.data() + begin * values;
  }
  return parts;
}

}  // namespace tributary
