// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tributary {

// How ranks send each other an array in host memory (PeerCommunicator). An
// array of up to kSmallElements goes whole to every rank. A longer one goes in
// pieces of kPieceElements, which are added while other pieces arrive.
inline constexpr int64_t kSmallElements = 4 * 1024;
inline constexpr int64_t kPieceElements = 256 * 1024;  // 1 MiB

}  // namespace tributary
