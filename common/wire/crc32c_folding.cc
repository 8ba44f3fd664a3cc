#include "common/wire/crc32c_folding.h"

#include <cstring>

#include "common/base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tributary::internal {

#if defined(__x86_64__)

namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // bit-reflected

// x^n modulo the polynomial, bit-reflected, times x: the product of two
// reflected numbers is shifted by one bit.
constexpr uint64_t Power(int n) {
  uint32_t power = 0x80000000;
  for (int i = 0; i < n; ++i) {
    power = (power >> 1) ^ ((power & 1) ? kPolynomial : 0);
  }
  return uint64_t{power} << 1;
}

// The two factors that move 128 bits forward by `bits`; `first` multiplies
// their first half.
struct Move {
  uint64_t first;
  uint64_t second;
};
constexpr Move MoveBy(int bits) { return {Power(bits + 32), Power(bits - 32)}; }

constexpr Move kBy2048 = MoveBy(2048);
constexpr Move kBy512 = MoveBy(512);
constexpr Move kBy128 = MoveBy(128);

#define TRIBUTARY_AVX512 \
  __attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2")))

TRIBUTARY_AVX512 inline __m128i Factors(const Move& move) {
  return _mm_set_epi64x(static_cast<int64_t>(move.second),
                        static_cast<int64_t>(move.first));
}

TRIBUTARY_AVX512 inline __m512i FourTimes(const Move& move) {
  const auto first = static_cast<int64_t>(move.first);
  const auto second = static_cast<int64_t>(move.second);
  return _mm512_set_epi64(second, first, second, first, second, first, second,
                          first);
}

// Moves each 128 bits of `x` and adds `next`.
TRIBUTARY_AVX512 inline __m512i Fold(__m512i x, __m512i factors, __m512i next) {
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, factors, 0x00),
                                   _mm512_clmulepi64_epi128(x, factors, 0x11),
                                   next, kXorOfThree);
}

}  // namespace

bool HaveFoldingCrc32c() {
  return __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("vpclmulqdq") &&
         __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.2");
}

TRIBUTARY_AVX512 uint32_t ExtendCrc32cFolding(uint32_t crc, const void* data,
                                              size_t n) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint64_t state = static_cast<uint32_t>(~crc);
  if (n >= 256) {
    const __m512i by2048 = FourTimes(kBy2048);
    const __m512i by512 = FourTimes(kBy512);
    const __m128i by128 = Factors(kBy128);
    __m512i a = _mm512_loadu_si512(p);
    __m512i b = _mm512_loadu_si512(p + 64);
    __m512i c = _mm512_loadu_si512(p + 128);
    __m512i d = _mm512_loadu_si512(p + 192);
    a = _mm512_xor_si512(
        a,
        _mm512_zextsi128_si512(_mm_cvtsi64_si128(static_cast<int64_t>(state))));
    for (p += 256, n -= 256; n >= 256; p += 256, n -= 256) {
      a = Fold(a, by2048, _mm512_loadu_si512(p));
      b = Fold(b, by2048, _mm512_loadu_si512(p + 64));
      c = Fold(c, by2048, _mm512_loadu_si512(p + 128));
      d = Fold(d, by2048, _mm512_loadu_si512(p + 192));
    }
    d = Fold(Fold(Fold(a, by512, b), by512, c), by512, d);
    for (; n >= 64; p += 64, n -= 64) {
      d = Fold(d, by512, _mm512_loadu_si512(p));
    }
    alignas(64) __m128i quarters[4];
    _mm512_store_si512(quarters, d);
    __m128i rest = quarters[0];
    for (int i = 1; i < 4; ++i) {
      rest = _mm_xor_si128(
          quarters[i], _mm_xor_si128(_mm_clmulepi64_si128(rest, by128, 0x00),
                                     _mm_clmulepi64_si128(rest, by128, 0x11)));
    }
    // `rest` has the same remainder as all bytes so far.
    state = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(rest)));
    state =
        _mm_crc32_u64(state, static_cast<uint64_t>(_mm_extract_epi64(rest, 1)));
  }
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, sizeof(word));
    state = _mm_crc32_u64(state, word);
  }
  auto tail = static_cast<uint32_t>(state);
  for (; n > 0; --n, ++p) tail = _mm_crc32_u8(tail, *p);
  return ~tail;
}

#else

bool HaveFoldingCrc32c() { return false; }
uint32_t ExtendCrc32cFolding(uint32_t, const void*, size_t) {
  TRIBUTARY_CHECK(false);
}

#endif

}  // namespace tributary::internal
