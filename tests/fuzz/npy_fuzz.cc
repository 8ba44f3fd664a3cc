// SPDX-License-Identifier: Apache-2.0
// NumPy's format, plain and gzipped.
#include "worker/data/readers/npy_reader.h"

#include "tests/fuzz/data_checks.h"

namespace tributary::fuzz {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const TargetKind kind = KindOf(input.Byte());
  const RowRange range = RangeOf(input.Byte());
  const absl::string_view array = input.Part();
  CheckTwoFiles(
      array, input.Rest(), range,
      [kind](InputFile* features, InputFile* labels, const RowRange& rows) {
        return ReadNpy(features, labels, rows, kind);
      });
  return 0;
}

}  // namespace tributary::fuzz
