// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tributary {

// An operation on a queue, such as gRPC's completion queue: the queue returns
// it when the operation ends.
class CompletionTag {
 public:
  virtual ~CompletionTag() = default;
  virtual void Proceed(bool ok) = 0;
};

}  // namespace tributary
