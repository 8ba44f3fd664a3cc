// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/status/why.h"

namespace tributary {

// Says why no step ends although every member's process runs and is heard:
// follows the chain of waits to the member that waits for nobody.
WhyAnswer ExplainStuck(const WhyFacts& facts);

}  // namespace tributary
