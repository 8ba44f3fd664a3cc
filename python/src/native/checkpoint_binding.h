// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace tributary {

// Adds the class Checkpoint: a CheckpointReader for Python.
void BindCheckpoint(nanobind::module_& module);

}  // namespace tributary
