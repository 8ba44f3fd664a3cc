// SPDX-License-Identifier: Apache-2.0
// MNIST's format, plain and gzipped.
#include "tests/fuzz/data_checks.h"

namespace tributary::fuzz {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const TargetKind kind = KindOf(input.Byte());
  const RowRange range = RangeOf(input.Byte());
  const absl::string_view images = input.Part();
  CheckTwoFiles(images, input.Rest(), range, kind, [](const ArrayFiles& files) {
    return OpenIdx(files, ReadOrder::kSequential);
  });
  return 0;
}

}  // namespace tributary::fuzz
