// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace tributary::internal {

// CRC-32C by folding with carry-less products of registers of 256 or 512 bits
// (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
// Instruction", Intel 2009): each register of bytes takes only two products, so
// memory limits the speed.
bool HaveFolding256();  // AVX2 and VPCLMULQDQ
bool HaveFolding512();  // AVX-512 and VPCLMULQDQ
uint32_t ExtendCrc32cFolding256(uint32_t crc, const void* data, size_t n);
uint32_t ExtendCrc32cFolding512(uint32_t crc, const void* data, size_t n);

}  // namespace tributary::internal
