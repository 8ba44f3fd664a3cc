// SPDX-License-Identifier: Apache-2.0
#pragma once

// TRIBUTARY_CLONES compiles a function for several instruction sets; the loader
// picks one. Contraction into fused multiply-adds is off, so all of them give
// the same bits. Templates called from such a function must
// always be inlined, so that they are compiled into each clone. Sanitizers and
// clang 14 do not support clones.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    defined(__GLIBC__) && defined(__OPTIMIZE__) &&                     \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(TRIBUTARY_NO_CLONES)
#define TRIBUTARY_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define TRIBUTARY_CLONES
#endif

namespace tributary {

// A float at any byte address, as received buffers hold them.
typedef float UnalignedFloat __attribute__((aligned(1), may_alias));

}  // namespace tributary
