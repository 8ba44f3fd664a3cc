// SPDX-License-Identifier: Apache-2.0
#include "common/host/reachability.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "common/base/unique_fd.h"

namespace tributary {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(10);

// A socket that is bound to a free port of this machine.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(fd_.get(), plain, size), 0);
    EXPECT_EQ(getsockname(fd_.get(), plain, &size), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  void Listen() { EXPECT_EQ(listen(fd_.get(), 1), 0); }
  const std::string& address() const { return address_; }

 private:
  const UniqueFd fd_;
  std::string address_;
};

TEST(ReachabilityTest, SaysWhetherSomebodyListens) {
  Listener listener;
  EXPECT_EQ(WhyNobodyAnswers(listener.address(), kTimeout),
            "nobody listens there");
  listener.Listen();
  EXPECT_EQ(WhyNobodyAnswers(listener.address(), kTimeout), "");
}

TEST(ReachabilityTest, NamesAHostThatIsUnknown) {
  EXPECT_THAT(WhyNobodyAnswers("no-such-host.invalid:7070", kTimeout),
              ::testing::StartsWith("cannot look up no-such-host.invalid: "));
}

}  // namespace
}  // namespace tributary
