// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tributary {

// The ways in which the text of a `--set` override can go on. `begun`:
// "training.op", "device=c". A key of a block ends in ".", any other one in
// "=". After a key and "=": its names or switches; nothing where it has none.
// Numbers within a list of layers are passed over: "model.sequential.0.".
std::vector<std::string> JobKeys(const std::string& begun);

}  // namespace tributary
