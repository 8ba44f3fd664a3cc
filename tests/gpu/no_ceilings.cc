#include "tests/gpu/speed.h"

namespace tributary::testing {

double CopyCeiling() { return 0; }

}  // namespace tributary::testing
