// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

namespace tributary {

// How many calls are under way on the connections of this process's servers, by
// gRPC's own account of them (channelz: gRFC A14). A call counts once its
// headers have arrived, even before its message. Not thread-safe.
class OpenCalls {
 public:
  // Begins a round of calls to Of. In each round gRPC is asked at most once for
  // connections that are not known yet.
  void Begin() { listed_ = false; }
  // Returns how many calls are under way on the connection from this address,
  // which PlainAddress has made. 0: gRPC does not know the connection yet, or
  // it is over.
  int64_t Of(const std::string& address);

 private:
  void List();

  std::unordered_map<std::string, int64_t> sockets_;  // by address: the number
  bool listed_ = false;
};

}  // namespace tributary
