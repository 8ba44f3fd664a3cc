// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tributary {

// How ranks send each other an array in host memory (PeerCommunicator): up to
// kSmallElements whole to everybody, a longer one in pieces of kPieceElements,
// which are added while others arrive.
inline constexpr int64_t kSmallElements = 4 * 1024;
inline constexpr int64_t kPieceElements = 256 * 1024;  // 1 MiB

}  // namespace tributary
