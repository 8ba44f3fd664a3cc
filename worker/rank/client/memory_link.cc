// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/memory_link.h"

#include <sys/types.h>
#include <unistd.h>

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/host/memory/unix_socket.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// Enough, because the server has a thread for these connections alone.
constexpr absl::Duration kTimeout = absl::Seconds(5);

// The error when the server has closed the connection, perhaps because this
// process runs as another user.
absl::Status Closed(const UniqueFd& socket, const absl::Status& status) {
  const absl::StatusOr<uid_t> server = PeerUser(socket);
  if (!server.ok() || *server == geteuid()) return status;
  return absl::UnavailableError(absl::StrCat(
      status.message(), "; the server runs as user ", *server,
      " and this process as user ", geteuid(),
      "; the server accepts other users only with --shared-memory-any-user"));
}

}  // namespace

MemoryLink::MemoryLink(std::shared_ptr<SharedArena> gradients, UniqueFd socket,
                       uint64_t connection,
                       std::shared_ptr<const MappedArena> weights)
    : gradients_(std::move(gradients)),
      socket_(std::move(socket)),
      connection_(connection),
      weights_(std::move(weights)) {}

absl::StatusOr<std::unique_ptr<MemoryLink>> MemoryLink::Connect(
    std::shared_ptr<SharedArena> gradients, const v1::ClockResponse& clock,
    const v1::BlockAddress& address, uint32_t rank, const std::string& ticket) {
  if (clock.shared_memory_socket().empty()) {
    return absl::UnavailableError("the server shares no memory");
  }
  TRIBUTARY_ASSIGN_OR_RETURN(UniqueFd socket,
                             ConnectUnix(clock.shared_memory_socket()));
  v1::SharedMemoryHello hello;
  *hello.mutable_address() = address;
  hello.set_token(clock.shared_memory_token());
  hello.set_rank(rank);
  hello.set_ticket(ticket);
  TRIBUTARY_ASSIGN_OR_RETURN(const UniqueFd memory, gradients->Share());
  const absl::Status sent =
      SendUnix(socket, hello.SerializeAsString(), memory.get(), kTimeout);
  if (!sent.ok()) return Closed(socket, sent);
  const absl::StatusOr<UnixMessage> message = ReceiveUnix(socket, kTimeout);
  if (!message.ok()) return Closed(socket, message.status());
  v1::SharedMemoryWelcome welcome;
  if (!welcome.ParseFromString(message->bytes)) {
    return absl::UnavailableError("the answer is no SharedMemoryWelcome");
  }
  if (!welcome.error().empty() || welcome.connection() == 0) {
    return absl::UnavailableError(welcome.error());
  }
  TRIBUTARY_ASSIGN_OR_RETURN(std::shared_ptr<const MappedArena> weights,
                             MappedArena::Map(message->descriptor));
  return std::unique_ptr<MemoryLink>(
      new MemoryLink(std::move(gradients), std::move(socket),
                     welcome.connection(), std::move(weights)));
}

bool MemoryLink::Describe(const Block& block,
                          absl::Span<const float* const> tensors,
                          v1::PushPullRequest* request) const {
  std::vector<uint64_t> offsets;
  for (const Slice& slice : block.slices) {
    const std::optional<uint64_t> offset = gradients_->OffsetOf(
        tensors[slice.parameter] + slice.begin, slice.size() * sizeof(float));
    if (!offset) return false;
    offsets.push_back(*offset);
  }
  for (size_t i = 0; i < offsets.size(); ++i) {
    v1::SharedRange* const range = request->add_ranges();
    range->set_offset(offsets[i]);
    range->set_bytes(block.slices[i].size() * sizeof(float));
  }
  return true;
}

absl::StatusOr<Payload> MemoryLink::Weights(uint64_t offset,
                                            int64_t bytes) const {
  const char* const weights =
      weights_->At(offset, static_cast<uint64_t>(bytes));
  if (weights != nullptr) {
    return Payload({Payload::Piece(weights, static_cast<size_t>(bytes))},
                   weights_);
  }
  return absl::DataLossError(absl::StrCat("weights at ", offset,
                                          " of a memory of ", weights_->size(),
                                          " bytes, wanted ", bytes, " bytes"));
}

}  // namespace tributary
