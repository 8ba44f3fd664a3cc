// SPDX-License-Identifier: Apache-2.0
// NumPy's format, plain and gzipped.
#include "tests/fuzz/data_checks.h"

namespace tributary::fuzz {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const TargetKind kind = KindOf(input.Byte());
  const RowRange range = RangeOf(input.Byte());
  const absl::string_view array = input.Part();
  CheckTwoFiles(array, input.Rest(), range, kind, [](const ArrayFiles& files) {
    return OpenNpy(files, {}, ReadOrder::kSequential);
  });
  return 0;
}

}  // namespace tributary::fuzz
