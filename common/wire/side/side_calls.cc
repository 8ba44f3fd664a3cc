// SPDX-License-Identifier: Apache-2.0
#include "common/wire/side/side_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/wire/calls/completion_tag.h"
#include "common/wire/grpc_status.h"
#include "common/wire/side/reflection.h"
#include "tributary/v1/grpc_services.pb.h"

namespace tributary {
namespace {

constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
constexpr char kReflection[] =
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
constexpr char kReflectionAlpha[] =
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr size_t kMaxSideRequestBytes = 4096;

grpc::ByteBuffer Encode(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

grpc::Status Decode(const grpc::ByteBuffer& buffer,
                    google::protobuf::MessageLite* message) {
  if (buffer.Length() > kMaxSideRequestBytes) {
    return {grpc::StatusCode::INVALID_ARGUMENT,
            absl::StrCat("a request of ", buffer.Length(),
                         " bytes, wanted at most ", kMaxSideRequestBytes)};
  }
  grpc::Slice slice;
  if (!buffer.DumpToSingleSlice(&slice).ok() ||
      !message->ParseFromArray(slice.begin(), static_cast<int>(slice.size()))) {
    return {grpc::StatusCode::INVALID_ARGUMENT,
            "the bytes are no request of this method"};
  }
  return grpc::Status::OK;
}

}  // namespace

// One call: reads a message and writes an answer, and repeats this if its
// method is a stream. Deletes itself when the call is over and no operation is
// in progress.
class SideCalls::Call final : public CompletionTag {
 public:
  static void Post(SideCalls* owner) {
    auto* call = new Call(owner);
    owner->service_.RequestCall(&call->context_, &call->stream_, owner->queue_,
                                owner->queue_, call);
  }

  void Proceed(bool ok) override {
    switch (state_) {
      case State::kAccepting:
        if (!ok) {  // The server is shutting down; `over_` never fires.
          delete this;
          return;
        }
        if (!owner_->draining_) Post(owner_);
        owner_->calls_.insert(this);
        Begin();
        break;
      case State::kReading:
        ok ? Take() : End(grpc::Status::OK);
        break;
      case State::kWriting:
        ok ? Written() : End(grpc::Status::OK);
        break;
      case State::kFinishing:
      case State::kWatching:
        busy_ = false;
        break;
    }
    DeleteWhenOver();
  }

  void GoHome() {
    if (state_ == State::kWatching) Write(Health());
  }

 private:
  enum class State { kAccepting, kReading, kWriting, kWatching, kFinishing };

  // Fires when an accepted call is over for any reason.
  class Over final : public CompletionTag {
   public:
    explicit Over(Call* call) : call_(call) {}
    void Proceed(bool /*ok*/) override {
      call_->is_over_ = true;
      call_->DeleteWhenOver();
    }

   private:
    Call* const call_;
  };

  explicit Call(SideCalls* owner)
      : owner_(owner), stream_(&context_), over_(this) {
    context_.AsyncNotifyWhenDone(static_cast<CompletionTag*>(&over_));
  }

  void DeleteWhenOver() {
    if (!is_over_ || busy_) return;
    owner_->calls_.erase(this);
    delete this;
  }

  void Begin() {
    const std::string& method = context_.method();
    const auto caller = owner_->guard_->Admit(context_, method, 0);
    if (!caller.ok()) return End(ToGrpcStatus(caller.status()));
    const bool reflects = method == kReflection || method == kReflectionAlpha;
    const bool known = method == kCheck || method == kWatch ||
                       (reflects && owner_->reflection_);
    if (!known) {
      return End({grpc::StatusCode::UNIMPLEMENTED,
                  absl::StrCat("there is no method ", method)});
    }
    if (owner_->calls_.size() > kMaxCalls) {
      return End({grpc::StatusCode::RESOURCE_EXHAUSTED,
                  absl::StrCat(kMaxCalls, " such calls are under way")});
    }
    Read();
  }

  void Take() {
    const std::string& method = context_.method();
    const bool health = method == kCheck || method == kWatch;
    v1::ReflectionRequest question;
    const grpc::Status status =
        health ? Decode(message_, &asked_) : Decode(message_, &question);
    if (!status.ok()) return End(status);
    if (!health) {
      return Write(Encode(AnswerReflection(question, AllServices())));
    }
    if (method == kCheck && !Knows(asked_.service())) {
      return End({grpc::StatusCode::NOT_FOUND,
                  absl::StrCat("there is no service ", asked_.service())});
    }
    Write(Health());
  }

  void Written() {
    const std::string& method = context_.method();
    if (method == kCheck) return End(grpc::Status::OK);
    if (method != kWatch) return Read();
    if (!told_serving_) return End(grpc::Status::OK);
    state_ = State::kWatching;
    busy_ = false;
    if (!owner_->serving_) Write(Health());  // changed meanwhile
  }

  void Read() {
    if (Enter(State::kReading)) stream_.Read(&message_, this);
  }
  void Write(const grpc::ByteBuffer& answer) {
    if (Enter(State::kWriting)) stream_.Write(answer, this);
  }
  void End(const grpc::Status& status) {
    if (Enter(State::kFinishing)) stream_.Finish(status, this);
  }
  // False when no operation may be started any more; the call is over by then.
  bool Enter(State state) {
    state_ = state;
    busy_ = !owner_->draining_;
    return busy_;
  }

  bool Knows(const std::string& service) const {
    return service.empty() ||
           std::find(owner_->services_.begin(), owner_->services_.end(),
                     service) != owner_->services_.end();
  }
  std::vector<std::string> AllServices() const {
    std::vector<std::string> all = owner_->services_;
    all.insert(all.end(), {"grpc.health.v1.Health",
                           "grpc.reflection.v1alpha.ServerReflection"});
    return all;
  }
  grpc::ByteBuffer Health() {
    using Response = v1::HealthCheckResponse;
    told_serving_ = owner_->serving_;
    Response response;
    response.set_status(!Knows(asked_.service()) ? Response::SERVICE_UNKNOWN
                        : told_serving_          ? Response::SERVING
                                                 : Response::NOT_SERVING);
    return Encode(response);
  }

  SideCalls* const owner_;
  State state_ = State::kAccepting;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_;
  Over over_;
  grpc::ByteBuffer message_;
  v1::HealthCheckRequest asked_;
  bool told_serving_ = true;
  bool busy_ = true;      // an operation is in progress
  bool is_over_ = false;  // the call is over
};

SideCalls::SideCalls(std::vector<std::string> services,
                     std::shared_ptr<const CallGuard> guard, bool reflection)
    : services_(std::move(services)),
      guard_(std::move(guard)),
      reflection_(reflection) {}

void SideCalls::Start(grpc::ServerCompletionQueue* queue) {
  queue_ = queue;
  Call::Post(this);
}

void SideCalls::GoHome() {
  serving_ = false;
  for (Call* call : calls_) call->GoHome();
}

}  // namespace tributary
