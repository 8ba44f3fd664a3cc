// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace tributary {

// Adds the class Follower: a Follower of worker/rank/session for Python.
void BindFollower(nanobind::module_& module);

}  // namespace tributary
