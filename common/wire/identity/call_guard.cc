// SPDX-License-Identifier: Apache-2.0
#include "common/wire/identity/call_guard.h"

#include <grpcpp/security/auth_metadata_processor.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/security/method_access.h"
#include "common/security/secret.h"
#include "common/status/printable.h"
#include "common/status/status_macros.h"
#include "common/wire/grpc_status.h"
#include "common/wire/identity/caller_proof.h"
#include "common/wire/identity/role_name.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

constexpr int64_t kRefusalLogPauseMicros = 1'000'000;

absl::Status Unproved() {
  return absl::UnauthenticatedError("it is not proved who calls");
}
absl::Status NotAllowed() {
  return absl::PermissionDeniedError("the caller may not do this");
}

std::optional<PeerRole> PeerRoleOf(v1::Role role) {
  switch (role) {
    case v1::ROLE_SERVER:
      return PeerRole::kServer;
    case v1::ROLE_WORKER:
      return PeerRole::kWorker;
    case v1::ROLE_COORDINATOR:
      return PeerRole::kCoordinator;
    case v1::ROLE_OBSERVER:
      return PeerRole::kOperator;
    default:
      return std::nullopt;
  }
}

// The value of a key of the call's metadata; empty: it has none, or several.
absl::string_view MetadataOf(
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata,
    const char* key) {
  const auto [first, last] = metadata.equal_range(key);
  if (first == last || std::next(first) != last) return {};
  return {first->second.data(), first->second.size()};
}

}  // namespace

absl::Status Caller::SpeaksFor(v1::Role role, uint32_t index,
                               uint64_t incarnation) const {
  if (unchecked) return absl::OkStatus();
  if (!place || place->role != role || place->index != index ||
      place->incarnation != incarnation) {
    return NotAllowed();
  }
  return absl::OkStatus();
}

absl::Status Caller::MayRegisterAs(v1::Role role) const {
  if (!identity) return absl::OkStatus();
  // A worker may also register as an observer.
  const bool watches =
      role == v1::ROLE_OBSERVER && identity->role == PeerRole::kWorker;
  return watches || PeerRoleOf(role) == identity->role ? absl::OkStatus()
                                                       : NotAllowed();
}

// Anybody may watch, so all observers share one account.
PeerConnections::CallerAccount Caller::Account() const {
  if (place && place->role != v1::ROLE_OBSERVER) {
    return {absl::StrCat(RoleName(place->role), " ", place->index), true};
  }
  if (place) return {"observers", false};
  return {identity ? identity->Uri() : has_token ? "token" : "somebody", false};
}

std::string Caller::Name() const {
  return Printable(absl::StrCat(identity    ? identity->Uri()
                                : has_token ? "the holder of the token"
                                            : "somebody",
                                " at ", address));
}

// Asks the guard about every call to a port when its headers have arrived. A
// refused call ends then: its message of up to 64 MiB is not received.
class CallGuard::HeaderGate final : public grpc::AuthMetadataProcessor {
 public:
  explicit HeaderGate(std::shared_ptr<const CallGuard> guard)
      : guard_(std::move(guard)) {}

  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata,
                       grpc::AuthContext* connection,
                       OutputMetadata* /*consumed*/,
                       OutputMetadata* /*answer*/) override {
    const auto caller =
        guard_->Admit(metadata, connection, "an unknown address",
                      MetadataOf(metadata, ":path"));
    if (!caller.ok()) return ToGrpcStatus(caller.status());
    if (guard_->connections_->Begin(caller->Account())) {
      return grpc::Status::OK;
    }
    return {grpc::StatusCode::RESOURCE_EXHAUSTED,
            "too many calls of this caller are still arriving"};
  }

 private:
  const std::shared_ptr<const CallGuard> guard_;
};

CallGuard::CallGuard(Options options)
    : options_(std::move(options)),
      connections_(std::make_shared<PeerConnections>(options_.clock)) {}
CallGuard::CallGuard()
    : open_(true), connections_(std::make_shared<PeerConnections>()) {}

std::shared_ptr<CallGuard> CallGuard::Open() {
  return std::shared_ptr<CallGuard>(new CallGuard());
}

std::shared_ptr<grpc::ServerCredentials> CallGuard::ForServer() const {
  if (options_.tls == nullptr) return grpc::InsecureServerCredentials();
  auto credentials =
      options_.tls->ForServer(/*certificates_only=*/options_.token.empty());
  credentials->SetAuthMetadataProcessor(
      std::make_shared<HeaderGate>(shared_from_this()));
  return credentials;
}

void CallGuard::SetJob(Job job) {
  absl::MutexLock lock(&mu_);
  job_ = std::move(job);
}

absl::Status CallGuard::Identify(const Metadata& metadata,
                                 const grpc::AuthContext* connection,
                                 Caller* caller) const {
  if (options_.tls == nullptr) return absl::OkStatus();
  if (auto identity = CallerOf(*connection); identity.ok()) {
    caller->identity = *std::move(identity);
    absl::MutexLock lock(&mu_);
    const bool same_job = caller->identity->job.empty() || job_.name.empty() ||
                          caller->identity->job == job_.name;
    return same_job ? absl::OkStatus() : Unproved();
  }
  absl::string_view token = MetadataOf(metadata, kTokenKey);
  caller->has_token = !options_.token.empty() &&
                      absl::ConsumePrefix(&token, kTokenPrefix) &&
                      EqualSecrets(token, options_.token);
  return caller->has_token ? absl::OkStatus() : Unproved();
}

absl::StatusOr<MemberPlace> CallGuard::PlaceOf(absl::string_view ticket) const {
  std::string key;
  uint64_t job_id = 0;
  {
    absl::MutexLock lock(&mu_);
    key = job_.key;
    job_id = job_.id;
  }
  if (key.empty()) {
    return absl::UnavailableError("this process knows no job yet");
  }
  const absl::StatusOr<MemberPlace> claimed = ReadTicket(ticket);
  if (ticket.empty() || !claimed.ok()) return Unproved();
  if (claimed->job_id != job_id) {
    return absl::FailedPreconditionError(
        "this address now serves another job, not the one that the caller has "
        "a place in; if the coordinator of that job had this address, it is "
        "gone: start it again with its own --run-dir");
  }
  const auto place = tributary::CheckTicket(key, ticket);
  if (!place.ok()) return Unproved();
  return *place;
}

absl::StatusOr<std::optional<MemberPlace>> CallGuard::CheckRank(
    absl::string_view ticket, uint32_t rank) const {
  if (open_) return std::nullopt;
  TRIBUTARY_ASSIGN_OR_RETURN(const MemberPlace place, PlaceOf(ticket));
  if (place.role != v1::ROLE_WORKER || place.index != rank) return NotAllowed();
  return place;
}

absl::Status CallGuard::Refuse(absl::Status status, absl::string_view method,
                               const Caller& caller) const {
  ++refused_;
  const int64_t now = options_.clock->NowMicros();
  uint64_t others = 0;
  {
    absl::MutexLock lock(&mu_);
    if (now - logged_micros_ < kRefusalLogPauseMicros) return status;
    logged_micros_ = now;
    others = refused_ - logged_ - 1;
    logged_ = refused_;
  }
  spdlog::warn(
      "refused {} from {}: {}{}", Printable(method), caller.Name(),
      std::string(status.message()),
      others > 0 ? absl::StrCat(" (and ", others, " calls before)") : "");
  return status;
}

absl::StatusOr<Caller> CallGuard::Admit(const grpc::ServerContextBase& context,
                                        absl::string_view method,
                                        size_t message_bytes) const {
  const std::string address = context.peer();
  absl::StatusOr<Caller> caller = Admit(
      context.client_metadata(), context.auth_context().get(), address, method);
  connections_->Arrived(
      address,
      caller.ok() ? caller->Account() : PeerConnections::CallerAccount(),
      message_bytes);
  return caller;
}

absl::StatusOr<Caller> CallGuard::Admit(const Metadata& metadata,
                                        const grpc::AuthContext* connection,
                                        std::string address,
                                        absl::string_view method) const {
  Caller caller;
  caller.unchecked = open_;
  if (open_) return caller;
  caller.address = std::move(address);
  const absl::Status identified = Identify(metadata, connection, &caller);
  if (!identified.ok()) return Refuse(identified, method, caller);
  const MethodAccess* const access = AccessTo(method);
  if (access == nullptr ||
      (caller.identity && !access->MayCall(caller.identity->role))) {
    return Refuse(NotAllowed(), method, caller);
  }
  if (!access->WantsTicket()) return caller;
  const absl::StatusOr<MemberPlace> place =
      PlaceOf(MetadataOf(metadata, kTicketKey));
  if (!place.ok()) {
    // The caller is not yet, or no longer, a member: no reason to warn.
    if (!absl::IsUnauthenticated(place.status())) return place.status();
    return Refuse(place.status(), method, caller);
  }
  const std::optional<PeerRole> role = PeerRoleOf(place->role);
  const bool allowed = role && access->MayCallWithTicket(*role) &&
                       caller.MayRegisterAs(place->role).ok();
  if (!allowed) return Refuse(NotAllowed(), method, caller);
  caller.place = *place;
  return caller;
}

}  // namespace tributary
