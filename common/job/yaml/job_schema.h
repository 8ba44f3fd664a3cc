// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tributary {

// A JSON Schema (draft 2020-12) of the job file, for editors: the keys, their
// types, ranges, defaults and names, with every short form that a job file may
// use. What depends on several keys is not in it; `tributary train --dry-run`
// checks that.
std::string JobSchema();

}  // namespace tributary
