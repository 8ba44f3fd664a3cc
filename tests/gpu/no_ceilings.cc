#include "tests/gpu/speed.h"

namespace tributary::testing {

CopyCeilings MeasureCopyCeilings() { return {}; }

}  // namespace tributary::testing
