#pragma once

#include <cstddef>
#include <cstdint>

namespace tributary::internal {

// CRC-32C by folding with carry-less products of 512-bit registers (Gopal et
// al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
// Instruction", Intel 2009): 64 bytes take two products, so that memory is the
// limit.
bool HaveFoldingCrc32c();  // AVX-512 and VPCLMULQDQ
uint32_t ExtendCrc32cFolding(uint32_t crc, const void* data, size_t n);

}  // namespace tributary::internal
