// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

namespace tributary {

// How many calls are under way on the connections of this process's servers,
// by gRPC's own account of them (channelz: gRFC A14). They count from the
// headers on, also before their message has arrived. Not thread-safe.
class OpenCalls {
 public:
  // Call it before a round of Of: addresses that are unknown are looked for
  // once in each.
  void Begin() { listed_ = false; }
  // Of the connection from a peer, whose address is as PlainAddress makes it;
  // 0: gRPC knows no such connection (yet, or any more).
  int64_t Of(const std::string& address);

 private:
  void List();

  std::unordered_map<std::string, int64_t> sockets_;  // by address: the number
  bool listed_ = false;
};

}  // namespace tributary
