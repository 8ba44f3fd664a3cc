// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tributary {

// The parts of generated samples (docs/data.md).
inline constexpr int kCtrNumbers = 13;
inline constexpr int kCtrTables = 8;  // a sample has one id of each
inline constexpr int kLinearInputs = 20;
inline constexpr int kMlpTeacherInputs = 16;
inline constexpr int kMarkovTokens = 16;  // size of the vocabulary

}  // namespace tributary
