#pragma once

#include "tributary/v1/data.pb.h"
#include "tributary/v1/preprocessing.pb.h"
#include "worker/data/normalization.h"
#include "worker/data/raw_data.h"
#include "worker/data/readers/csv_reader.h"
#include "worker/data/readers/text_reader.h"

namespace tributary {

// Describes how the rows of `source` become features, so that rows that come
// after the training can be treated alike. `train`, `words` and `vocabulary`
// are what the readers have returned for it.
v1::Preprocessing DescribePreprocessing(const v1::DataSource& source,
                                        const RawData& train,
                                        const Normalization& normalization,
                                        const CsvWords& words,
                                        const Vocabulary& vocabulary);

}  // namespace tributary
