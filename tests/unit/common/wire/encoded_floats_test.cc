// SPDX-License-Identifier: Apache-2.0
#include "common/wire/encoded_floats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/wire/crc32c/crc32c.h"

namespace tributary {
namespace {

// More elements than are encoded at a time, read from pieces of several sizes.
TEST(EncodedFloatsTest, WhatIsEncodedInPartsIsReadFromPiecesWithItsChecksum) {
  constexpr int64_t kElements = 2 * 2048 + 77;
  std::vector<float> numbers(kElements);
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = std::sin(static_cast<float>(i));
  }
  for (const auto& encoding : AllEncodings()) {
    const auto size = static_cast<size_t>(encoding->Bytes(kElements));
    auto whole = std::make_shared<std::string>(size, '?');
    encoding->Encode(kElements, numbers.data(), whole->data());
    std::vector<float> wanted(kElements);
    encoding->Decode(kElements, whole->data(), wanted.data());

    std::string bytes(size, '?');
    const uint32_t before = Crc32c("abc", 3);
    const uint32_t crc = EncodeFloats(*encoding, kElements, numbers.data(),
                                      bytes.data(), before);
    EXPECT_EQ(bytes, *whole) << encoding->name();
    EXPECT_EQ(crc, Crc32c(("abc" + bytes).data(), size + 3));

    for (size_t piece : {size_t{3}, size_t{4096}, size}) {
      std::vector<Payload::Piece> pieces;
      for (size_t at = 0; at < size; at += piece) {
        pieces.emplace_back(whole->data() + at, std::min(piece, size - at));
      }
      const Payload payload(std::move(pieces), whole);
      FloatReader reader(payload);
      std::vector<float> got(kElements);
      EXPECT_EQ(DecodeFloats(*encoding, kElements, &reader, got.data(), before),
                crc);
      EXPECT_EQ(got, wanted) << encoding->name() << " " << piece;
    }
  }
}

}  // namespace
}  // namespace tributary
