// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/types/span.h"
#include "tributary/v1/data.pb.h"
#include "tributary/v1/preprocessing.pb.h"
#include "worker/train/data/normalization.h"
#include "worker/train/data/raw_data.h"
#include "worker/train/data/readers/csv/csv_reader.h"
#include "worker/train/data/readers/text_reader.h"

namespace tributary {

// The knowledge that a table's reader has from the training data.
struct LearnedTable {
  const CsvWords* words = nullptr;
  absl::Span<const double> fill;  // MeasureFill
};

// Describes how the rows of `source` become features, so that rows that come
// after the training can be treated alike. `train`, `table` and `vocabulary`
// are what the readers have returned for it.
v1::Preprocessing DescribePreprocessing(const v1::DataSource& source,
                                        const RawData& train,
                                        const Normalization& normalization,
                                        const LearnedTable& table,
                                        const Vocabulary& vocabulary);

}  // namespace tributary
