// SPDX-License-Identifier: Apache-2.0
#include "common/wire/crc32c/crc32c_folding.h"

#include <cstring>

#include "common/base/check.h"
#include "common/wire/crc32c/crc32c_powers.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tributary::internal {

#if defined(__x86_64__)

namespace {

using Move = Crc32cMove;

constexpr Move kBy2048 = Crc32cMoveBy(2048);
constexpr Move kBy512 = Crc32cMoveBy(512);
constexpr Move kBy256 = Crc32cMoveBy(256);
constexpr Move kBy128 = Crc32cMoveBy(128);

// The bytes of one iteration of the loops; fewer bytes are not folded.
constexpr size_t kFoldedBytes = 256;

#define TRIBUTARY_FOLDING __attribute__((target("pclmul,sse4.2")))
#define TRIBUTARY_FOLDING256 \
  __attribute__((target("avx2,vpclmulqdq,pclmul,sse4.2")))
#define TRIBUTARY_FOLDING512 \
  __attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2")))

// Extends a state, the inverted checksum, by n bytes; returns the checksum.
TRIBUTARY_FOLDING uint32_t FinishBytes(uint64_t state, const unsigned char* p,
                                       size_t n) {
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, sizeof(word));
    state = _mm_crc32_u64(state, word);
  }
  auto tail = static_cast<uint32_t>(state);
  for (; n > 0; --n, ++p) tail = _mm_crc32_u8(tail, *p);
  return ~tail;
}

TRIBUTARY_FOLDING inline __m128i Factors(const Move& move) {
  return _mm_set_epi64x(static_cast<int64_t>(move.second),
                        static_cast<int64_t>(move.first));
}

// The checksum of `count` runs of 128 bits and of the n bytes at p after them.
TRIBUTARY_FOLDING uint32_t Finish(const __m128i* runs, int count,
                                  const unsigned char* p, size_t n) {
  const __m128i by128 = Factors(kBy128);
  __m128i rest = runs[0];
  for (int i = 1; i < count; ++i) {
    rest = _mm_xor_si128(
        runs[i], _mm_xor_si128(_mm_clmulepi64_si128(rest, by128, 0x00),
                               _mm_clmulepi64_si128(rest, by128, 0x11)));
  }
  // `rest` has the same remainder as all bytes so far.
  uint64_t state =
      _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(rest)));
  state =
      _mm_crc32_u64(state, static_cast<uint64_t>(_mm_extract_epi64(rest, 1)));
  return FinishBytes(state, p, n);
}

// Moves each 128 bits of `x` and adds `next`.
TRIBUTARY_FOLDING512 inline __m512i Fold(__m512i x, __m512i factors,
                                         __m512i next) {
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, factors, 0x00),
                                   _mm512_clmulepi64_epi128(x, factors, 0x11),
                                   next, kXorOfThree);
}
TRIBUTARY_FOLDING256 inline __m256i Fold(__m256i x, __m256i factors,
                                         __m256i next) {
  return _mm256_xor_si256(
      next, _mm256_xor_si256(_mm256_clmulepi64_epi128(x, factors, 0x00),
                             _mm256_clmulepi64_epi128(x, factors, 0x11)));
}

TRIBUTARY_FOLDING512 inline __m512i FourTimes(const Move& move) {
  const auto first = static_cast<int64_t>(move.first);
  const auto second = static_cast<int64_t>(move.second);
  return _mm512_set_epi64(second, first, second, first, second, first, second,
                          first);
}

TRIBUTARY_FOLDING256 inline __m256i Load256(const unsigned char* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

}  // namespace

bool HaveFolding256() {
  return __builtin_cpu_supports("avx2") &&
         __builtin_cpu_supports("vpclmulqdq") &&
         __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.2");
}
bool HaveFolding512() {
  return HaveFolding256() && __builtin_cpu_supports("avx512f");
}

TRIBUTARY_FOLDING256 uint32_t ExtendCrc32cFolding256(uint32_t crc,
                                                     const void* data,
                                                     size_t n) {
  const auto* p = static_cast<const unsigned char*>(data);
  const auto state = static_cast<uint32_t>(~crc);
  if (n < kFoldedBytes) return FinishBytes(state, p, n);
  const __m256i by2048 = _mm256_broadcastsi128_si256(Factors(kBy2048));
  const __m256i by256 = _mm256_broadcastsi128_si256(Factors(kBy256));
  __m256i lane[8];
  for (int i = 0; i < 8; ++i) lane[i] = Load256(p + 32 * i);
  lane[0] = _mm256_xor_si256(
      lane[0],
      _mm256_zextsi128_si256(_mm_cvtsi32_si128(static_cast<int>(state))));
  for (p += kFoldedBytes, n -= kFoldedBytes; n >= kFoldedBytes;
       p += kFoldedBytes, n -= kFoldedBytes) {
    for (int i = 0; i < 8; ++i) {
      lane[i] = Fold(lane[i], by2048, Load256(p + 32 * i));
    }
  }
  __m256i all = lane[0];
  for (int i = 1; i < 8; ++i) all = Fold(all, by256, lane[i]);
  for (; n >= 32; p += 32, n -= 32) all = Fold(all, by256, Load256(p));
  alignas(32) __m128i runs[2];
  _mm256_store_si256(reinterpret_cast<__m256i*>(runs), all);
  return Finish(runs, 2, p, n);
}

TRIBUTARY_FOLDING512 uint32_t ExtendCrc32cFolding512(uint32_t crc,
                                                     const void* data,
                                                     size_t n) {
  const auto* p = static_cast<const unsigned char*>(data);
  const auto state = static_cast<uint32_t>(~crc);
  if (n < kFoldedBytes) return FinishBytes(state, p, n);
  const __m512i by2048 = FourTimes(kBy2048);
  const __m512i by512 = FourTimes(kBy512);
  __m512i lane[4];
  for (int i = 0; i < 4; ++i) lane[i] = _mm512_loadu_si512(p + 64 * i);
  lane[0] = _mm512_xor_si512(
      lane[0],
      _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state))));
  for (p += kFoldedBytes, n -= kFoldedBytes; n >= kFoldedBytes;
       p += kFoldedBytes, n -= kFoldedBytes) {
    for (int i = 0; i < 4; ++i) {
      lane[i] = Fold(lane[i], by2048, _mm512_loadu_si512(p + 64 * i));
    }
  }
  __m512i all = lane[0];
  for (int i = 1; i < 4; ++i) all = Fold(all, by512, lane[i]);
  for (; n >= 64; p += 64, n -= 64) {
    all = Fold(all, by512, _mm512_loadu_si512(p));
  }
  alignas(64) __m128i runs[4];
  _mm512_store_si512(runs, all);
  return Finish(runs, 4, p, n);
}

#else

bool HaveFolding256() { return false; }
bool HaveFolding512() { return false; }
uint32_t ExtendCrc32cFolding256(uint32_t, const void*, size_t) {
  TRIBUTARY_CHECK(false);
}
uint32_t ExtendCrc32cFolding512(uint32_t, const void*, size_t) {
  TRIBUTARY_CHECK(false);
}

#endif

}  // namespace tributary::internal
