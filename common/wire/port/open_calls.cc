// SPDX-License-Identifier: Apache-2.0
#include "common/wire/port/open_calls.h"

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "common/wire/port/peer_connections.h"
#include "nlohmann/json.hpp"

namespace tributary {
namespace {

using Json = nlohmann::json;

// Parses gRPC's text and frees it. The result is discarded() when the text is
// null or not JSON.
Json Parse(char* text) {
  Json json(Json::value_t::discarded);
  if (text != nullptr) json = Json::parse(text, nullptr, false);
  gpr_free(text);
  return json;
}

// gRPC writes a 64-bit number as text, and leaves out a zero.
int64_t Number(const Json& object, const char* key) {
  const auto found = object.find(key);
  int64_t number = 0;
  if (found == object.end() || !found->is_string() ||
      !absl::SimpleAtoi(found->get_ref<const std::string&>(), &number)) {
    return 0;
  }
  return number;
}

const Json& Part(const Json& object, const char* key) {
  static const Json nothing = Json::object();
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? nothing : *found;
}

}  // namespace

// Lists all connections, because one may appear later than another with a
// higher number.
void OpenCalls::List() {
  sockets_.clear();
  const Json servers = Parse(grpc_channelz_get_servers(0));
  for (const Json& server : Part(servers, "server")) {
    const int64_t id = Number(Part(server, "ref"), "serverId");
    for (int64_t from = 0, next = 1; next > from;) {
      from = next;
      const Json page = Parse(grpc_channelz_get_server_sockets(id, from, 500));
      for (const Json& socket : Part(page, "socketRef")) {
        const int64_t number = Number(socket, "socketId");
        const std::string name = socket.value("name", "");
        // "chttp2 ipv4:10.0.0.2:40000"
        sockets_[PlainAddress(name.substr(name.find(' ') + 1))] = number;
        next = std::max(next, number + 1);
      }
    }
  }
}

int64_t OpenCalls::Of(const std::string& address) {
  auto found = sockets_.find(address);
  if (found == sockets_.end() && !listed_) {
    listed_ = true;
    List();
    found = sockets_.find(address);
  }
  if (found == sockets_.end()) return 0;
  const Json socket = Parse(grpc_channelz_get_socket(found->second));
  const Json& data = Part(Part(socket, "socket"), "data");
  if (data.empty()) {  // it is over, or the port has another connection
    sockets_.erase(found);
    return 0;
  }
  return Number(data, "streamsStarted") - Number(data, "streamsSucceeded") -
         Number(data, "streamsFailed");
}

}  // namespace tributary
