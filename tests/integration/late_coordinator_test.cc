// SPDX-License-Identifier: Apache-2.0
// A member that starts before its coordinator. They must be separate processes:
// gRPC makes progress on a connection while any thread of the process waits,
// and a coordinator's threads always wait.
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/unique_fd.h"
#include "common/member/coordinator_client.h"
#include "tests/testing/paths.h"
#include "tests/testing/running_process.h"
#include "tests/testing/soon.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

constexpr char kJob[] = R"(name: late
model: {mlp: {in: 20, hidden: [2], out: 1}}
data:
  train: {synthetic: {kind: linear, rows: 100}}
  batch_size: 10
training: {steps: 5, loss: mse, optimizer: {sgd: {learning_rate: 0.1}}}
)";

// Returns the address of a loopback port without a listener.
std::string FreeAddress() {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(to);
  sockaddr* const any = reinterpret_cast<sockaddr*>(&to);
  EXPECT_EQ(bind(fd.get(), any, length), 0);
  EXPECT_EQ(getsockname(fd.get(), any, &length), 0);
  return absl::StrCat("127.0.0.1:", ntohs(to.sin_port));
}

// A clock that advances by a second whenever a client reads it: at the start of
// a call, before each attempt and after it. Starts the coordinator after the
// first attempt has failed.
class LateClock final : public Clock {
 public:
  LateClock(std::string address, std::string folder)
      : address_(std::move(address)), folder_(std::move(folder)) {}

  int64_t NowMicros() const override {
    if (++asked_ == 3) {
      coordinator_ = testing::RunningProcess::Start(
          {.command = {testing::Program("tributary-coordinator"), "--job",
                       "job.yaml", "--listen", address_, "--run-dir", "run"},
           .folder = folder_});
      EXPECT_TRUE(coordinator_->WaitForOutput("waits for", testing::kSoon))
          << coordinator_->output();
    }
    return int64_t{1'000'000} * asked_;
  }

 private:
  const std::string address_;
  const std::string folder_;
  mutable int asked_ = 0;
  mutable std::unique_ptr<testing::RunningProcess> coordinator_;
};

class LateCoordinatorTest : public testing::TemporaryFolderTest {};

// The back-off doubles from 50 ms, so ten attempts take about four seconds.
TEST_F(LateCoordinatorTest, IsFoundWithinTenAttempts) {
  Write("job.yaml", kJob);
  const std::string address = FreeAddress();
  const LateClock clock(address, folder());
  const auto client =
      CoordinatorClient::Create({.address = address, .clock = &clock});
  ASSERT_TRUE(client.ok()) << client.status();
  v1::RegisterRequest request;
  request.set_role(v1::ROLE_WORKER);
  request.set_instance("early");
  const absl::StatusOr<v1::RegisterResponse> place =
      (*client)->Register(request, absl::Seconds(21));
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_EQ(place->index(), 0u);
}

}  // namespace
}  // namespace tributary
