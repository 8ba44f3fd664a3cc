// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/relay/message_relay.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/wire/blocking_call.h"
#include "common/wire/deadline.h"
#include "tests/testing/relay/byte_buffers.h"

namespace tributary::testing {
namespace {

constexpr char kService[] = "/tributary.v1.ParameterService/";

}  // namespace

absl::StatusOr<std::string> MessageSender::Send(const std::string& method,
                                                const std::string& message) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(absl::Seconds(30)));
  const auto answer =
      BlockingCall(&stub_, method.c_str(), &context, BufferOf(message));
  if (!answer.ok()) return answer.status();
  return BytesOf(*answer);
}

MessageRelay::MessageRelay(Handler handler) : handler_(std::move(handler)) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&service_);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  address_ = absl::StrCat("127.0.0.1:", port);
  const auto post = [this](auto request, const std::string& method) {
    RawCall::Post(
        [this, request](auto* context, auto* bytes, auto* writer, void* tag) {
          (service_.*request)(context, bytes, writer, queue_.get(),
                              queue_.get(), tag);
        },
        [this, method](RawCall* call) { Take(method, call); });
  };
  using Service = RawParameterService;
  post(&Service::RequestPushPull, absl::StrCat(kService, "PushPull"));
  post(&Service::RequestPull, absl::StrCat(kService, "Pull"));
  post(&Service::RequestReadClock, absl::StrCat(kService, "ReadClock"));
  post(&Service::RequestInitialize, absl::StrCat(kService, "Initialize"));
  thread_ = std::thread([this] { Loop(); });
}

MessageRelay::~MessageRelay() {
  server_->Shutdown();
  queue_->Shutdown();
  thread_.join();
}

void MessageRelay::Take(const std::string& method, RawCall* call) {
  const auto answer = handler_(method, BytesOf(call->TakeRequest()));
  if (answer.ok()) {
    call->Answer(BufferOf(*answer));
  } else {
    call->Fail(answer.status());
  }
}

void MessageRelay::Loop() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) static_cast<CompletionTag*>(tag)->Proceed(ok);
}

}  // namespace tributary::testing
