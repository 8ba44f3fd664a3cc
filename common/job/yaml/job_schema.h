// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tributary {

// A JSON Schema (draft 2020-12) of the job file, for editors: the keys, their
// types, ranges, defaults and names, with every short form that a job file may
// use. It has no rules that depend on several keys; `tributary train --dry-run`
// checks those.
std::string JobSchema();

}  // namespace tributary
