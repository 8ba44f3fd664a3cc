// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include "tests/integration/malformed/malformed.h"

namespace tributary::testing {

std::string CompressedZeros(size_t bytes) {
  const std::string zeros(1 << 20, '\0');
  std::string out(1 << 20, '\0'), bomb;
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  for (size_t done = 0; done < bytes; done += zeros.size()) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(zeros.data()));
    stream.avail_in = static_cast<uInt>(zeros.size());
    const bool last = done + zeros.size() >= bytes;
    do {
      stream.next_out = reinterpret_cast<Bytef*>(out.data());
      stream.avail_out = static_cast<uInt>(out.size());
      deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
      bomb.append(out.data(), out.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  }
  deflateEnd(&stream);
  return bomb;
}

}  // namespace tributary::testing
