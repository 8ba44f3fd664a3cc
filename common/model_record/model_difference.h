// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "tributary/v1/data.pb.h"
#include "tributary/v1/model_record.pb.h"

namespace tributary {

// Says in which way the model of a run computes other outputs from the same
// weights than the model of another run, as in "layer 1 is relu in HERE, but
// tanh in THERE". Empty: in none. Dropout is not compared, because it only
// trains. `here` and `there` name the places of `now` and `before`.
std::string ModelDifference(const v1::ModelRecord& before,
                            const v1::ModelRecord& now, absl::string_view here,
                            absl::string_view there);

// Says which other values two training sources put in the place of missing
// numbers, as in "a missing number becomes -999 in THERE, but the column's mean
// in HERE". Empty: the same, or one of them has no such value. Means and
// medians count as the same.
std::string FillDifference(const v1::DataSource& before,
                           const v1::DataSource& now, absl::string_view here,
                           absl::string_view there);

}  // namespace tributary
