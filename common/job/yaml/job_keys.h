// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tributary {

// Returns the texts of a `--set` override that begin with `begun`, such as
// "training.op" or "device=c". A key of a block ends in ".", any other key in
// "=". After a key and "=" come its possible names or switches, if any. The
// number of a layer in a list is accepted as it is: "model.sequential.0.".
std::vector<std::string> JobKeys(const std::string& begun);

}  // namespace tributary
