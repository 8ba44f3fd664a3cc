// SPDX-License-Identifier: Apache-2.0
#include <gloo/transport/tcp/device.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/failpoint.h"
#include "common/host/steady_waits.h"
#include "common/status/status_macros.h"
#include "worker/rank/collective/mesh.h"

namespace tributary {
namespace {

using gloo::transport::UnboundBuffer;

class GlooMesh;

// A Gloo buffer for one message.
class GlooOperation final : public Mesh::Operation {
 public:
  GlooOperation(GlooMesh* mesh, int peer, bool sends)
      : mesh_(mesh), peer_(peer), sends_(sends) {}
  ~GlooOperation() override;

  void Begin(gloo::transport::Context& context, uint64_t tag, void* data,
             size_t bytes);
  absl::Status Wait(absl::Duration timeout) override;
  void Interrupt() {
    if (!buffer_) return;
    sends_ ? buffer_->abortWaitSend() : buffer_->abortWaitRecv();
  }

 private:
  absl::Status Failed(const std::exception& error) const {
    return absl::UnavailableError(
        absl::StrCat("rank ", peer_, " is gone: ", error.what()));
  }

  GlooMesh* const mesh_;
  const int peer_;
  const bool sends_;
  std::unique_ptr<UnboundBuffer> buffer_;
  absl::Status begun_;
};

// Uses two connections to each rank, one per direction. Gloo holds a
// connection's lock while it copies a sender's bytes, and meanwhile Gloo's
// thread busily polls that connection for received bytes.
class GlooMesh final : public Mesh {
 public:
  GlooMesh(std::shared_ptr<gloo::transport::Device> device, int rank, int size)
      : device_(std::move(device)),
        up_(device_->createContext(rank, size)),
        down_(device_->createContext(rank, size)),
        rank_(rank),
        size_(size) {}

  absl::Status Connect(const GlooOptions& options);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* backend() const override { return "gloo"; }
  std::unique_ptr<Operation> Send(int to, uint64_t tag, const void* data,
                                  size_t bytes) override {
    TRIBUTARY_FAILPOINT_OR("worker-group-reset",
                           Context(rank_, to).getPair(to)->close());
    auto operation = std::make_unique<GlooOperation>(this, to, true);
    operation->Begin(Context(rank_, to), tag, const_cast<void*>(data), bytes);
    return operation;
  }
  std::unique_ptr<Operation> Receive(int from, uint64_t tag, void* data,
                                     size_t bytes) override {
    auto operation = std::make_unique<GlooOperation>(this, from, false);
    operation->Begin(Context(from, rank_), tag, data, bytes);
    return operation;
  }
  void Abort(const std::string& why) override {
    absl::MutexLock lock(&mu_);
    why_ = why.empty() ? "aborted" : why;
    for (GlooOperation* operation : waiting_) operation->Interrupt();
  }

  absl::Status BeginWait(GlooOperation* operation) {
    absl::MutexLock lock(&mu_);
    if (!why_.empty()) return absl::CancelledError(why_);
    waiting_.insert(operation);
    return absl::OkStatus();
  }
  absl::Status EndWait(GlooOperation* operation) {
    absl::MutexLock lock(&mu_);
    waiting_.erase(operation);
    return why_.empty() ? absl::OkStatus() : absl::CancelledError(why_);
  }

 private:
  gloo::transport::Context& Context(int from, int to) {
    return from < to ? *up_ : *down_;
  }
  // Makes the messages for Connect: returns the bytes with which all addresses
  // of this rank begin and end. `parts` gets for each other rank the remaining
  // bytes of the addresses to which it must connect.
  std::string Addresses(std::vector<std::string>* parts);
  void ConnectTo(int peer, absl::string_view addresses);

  const std::shared_ptr<gloo::transport::Device> device_;
  // up_ carries the messages to higher ranks, down_ those to lower ranks.
  const std::shared_ptr<gloo::transport::Context> up_, down_;
  const int rank_;
  const int size_;
  absl::Mutex mu_;
  std::set<GlooOperation*> waiting_ ABSL_GUARDED_BY(mu_);
  std::string why_ ABSL_GUARDED_BY(mu_);  // set by Abort
};

GlooOperation::~GlooOperation() = default;

void GlooOperation::Begin(gloo::transport::Context& context, uint64_t tag,
                          void* data, size_t bytes) {
  try {
    buffer_ = context.createUnboundBuffer(data, bytes);
    sends_ ? buffer_->send(peer_, tag) : buffer_->recv(peer_, tag);
  } catch (const std::exception& error) {
    begun_ = Failed(error);
  }
}

absl::Status GlooOperation::Wait(absl::Duration timeout) {
  TRIBUTARY_RETURN_IF_ERROR(begun_);
  TRIBUTARY_RETURN_IF_ERROR(mesh_->BeginWait(this));
  const absl::Duration begin = SteadyNow();
  absl::Status status;
  bool done = false;
  try {
    const auto limit = absl::ToChronoMilliseconds(timeout);
    done = sends_ ? buffer_->waitSend(limit) : buffer_->waitRecv(limit);
  } catch (const std::exception& error) {
    status = SteadyNow() - begin >= timeout
                 ? absl::DeadlineExceededError(
                       absl::StrCat("rank ", peer_, " did not come for ",
                                    absl::FormatDuration(timeout)))
                 : Failed(error);
  }
  const absl::Status aborted = mesh_->EndWait(this);
  return done ? absl::OkStatus() : aborted.ok() ? status : aborted;
}

// Encodes a text as its length and its bytes, for TakeText.
std::string TextOf(absl::string_view text) {
  return absl::StrCat(text.size(), ":", text);
}

absl::string_view TakeText(absl::string_view* message) {
  const size_t colon = message->find(':');
  size_t length = 0;
  if (colon == absl::string_view::npos ||
      !absl::SimpleAtoi(message->substr(0, colon), &length) ||
      length > message->size() - colon - 1) {
    throw std::invalid_argument("sent no address for this rank");
  }
  const absl::string_view text = message->substr(colon + 1, length);
  message->remove_prefix(colon + 1 + length);
  return text;
}

// Clears the bytes after a socket's address, which Gloo leaves uninitialized.
void ClearUnused(std::string* address) {
  sockaddr_storage socket{};
  if (address->size() < sizeof(socket)) return;
  std::memcpy(&socket, address->data(), sizeof(socket));
  const size_t used = socket.ss_family == AF_INET    ? sizeof(sockaddr_in)
                      : socket.ss_family == AF_INET6 ? sizeof(sockaddr_in6)
                                                     : sizeof(socket);
  std::fill_n(address->begin() + static_cast<long>(used), sizeof(socket) - used,
              '\0');
}

// The addresses of a device differ in a few bytes, such as the port.
std::string GlooMesh::Addresses(std::vector<std::string>* parts) {
  std::vector<std::string> addresses;  // two of each peer
  for (int peer = 0; peer < size_; ++peer) {
    for (const auto& context : {up_, down_}) {
      if (peer == rank_) continue;
      const std::vector<char> bytes = context->getPair(peer)->address().bytes();
      addresses.emplace_back(bytes.begin(), bytes.end());
      ClearUnused(&addresses.back());
    }
  }
  std::string begin, end;
  if (!addresses.empty()) begin = addresses[0];
  for (const std::string& address : addresses) {
    begin.erase(std::mismatch(begin.begin(), begin.end(), address.begin(),
                              address.end())
                    .first,
                begin.end());
  }
  if (!addresses.empty()) end = addresses[0].substr(begin.size());
  for (const std::string& address : addresses) {
    end.erase(end.begin(),
              std::mismatch(end.rbegin(), end.rend(), address.rbegin(),
                            address.rend() - static_cast<long>(begin.size()))
                  .first.base());
  }
  parts->assign(size_, "");
  for (size_t i = 0; i < addresses.size(); ++i) {
    const int peer = static_cast<int>(i / 2);
    (*parts)[peer < rank_ ? peer : peer + 1] += TextOf(addresses[i].substr(
        begin.size(), addresses[i].size() - begin.size() - end.size()));
  }
  return TextOf(begin) + TextOf(end);
}

void GlooMesh::ConnectTo(int peer, absl::string_view addresses) {
  const std::string begin(TakeText(&addresses));
  const std::string end(TakeText(&addresses));
  for (const auto& context : {up_, down_}) {
    const std::string address = absl::StrCat(begin, TakeText(&addresses), end);
    context->getPair(peer)->connect({address.begin(), address.end()});
  }
}

absl::Status GlooMesh::Connect(const GlooOptions& options) {
  int peer = -1;
  try {
    for (const auto& context : {up_, down_}) {
      context->setTimeout(absl::ToChronoMilliseconds(options.connect_timeout));
      for (peer = 0; peer < size_; ++peer) {
        if (peer != rank_) context->createPair(peer)->setLocalRank(0);
      }
    }
    std::vector<std::string> parts;
    std::string for_all = Addresses(&parts);
    TRIBUTARY_ASSIGN_OR_RETURN(
        const std::vector<std::string> addresses,
        options.exchange(std::move(for_all), std::move(parts)));
    for (peer = 0; peer < size_; ++peer) {
      if (peer != rank_) ConnectTo(peer, addresses.at(peer));
    }
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat(
        "cannot connect rank ", rank_, " to rank ", peer, ": ", error.what()));
  }
  return absl::OkStatus();
}

// Gloo writes to sockets whose other end may be gone and does not suppress
// SIGPIPE, which would end the process.
void IgnoreBrokenPipes() {
  struct sigaction now = {};
  if (sigaction(SIGPIPE, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) {
    return;
  }
  now.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &now, nullptr);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Mesh>> ConnectGlooMesh(
    const GlooOptions& options) {
  IgnoreBrokenPipes();
  std::unique_ptr<GlooMesh> mesh;
  try {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = options.host;
    mesh = std::make_unique<GlooMesh>(
        gloo::transport::tcp::CreateDevice(attributes), options.rank,
        options.size);
  } catch (const std::exception& error) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options.host,
                     " for the other ranks: ", error.what()));
  }
  TRIBUTARY_RETURN_IF_ERROR(mesh->Connect(options));
  return mesh;
}

}  // namespace tributary
