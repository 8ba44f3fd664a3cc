// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tributary/v1/job.pb.h"

namespace tributary {

// A sentence for the user about each list of the data of a resolved job that
// names a file more than once, also through links. Leaves out files that are
// not there.
std::vector<std::string> RepeatedFileNotes(v1::DataSpec data);

}  // namespace tributary
