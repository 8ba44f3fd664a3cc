// SPDX-License-Identifier: Apache-2.0
#include "common/wire/identity/caller_proof.h"

#include <grpcpp/client_context.h>
#include <grpcpp/security/credentials.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/wire/identity/peer_credentials.h"

namespace tributary {

CallerProof::CallerProof(std::shared_ptr<const PeerCredentials> tls,
                         std::string token)
    : tls_(std::move(tls)), token_(std::move(token)) {}

absl::Status CallerProof::CheckDates() const {
  return tls_ == nullptr ? absl::OkStatus() : tls_->CheckOwnDates();
}

CallerProof CallerProof::WithTicket(std::string ticket) const {
  CallerProof proof = *this;
  proof.ticket_ = std::move(ticket);
  return proof;
}

std::shared_ptr<grpc::ChannelCredentials> CallerProof::ForChannel(
    PeerRole server) const {
  return tls_ != nullptr ? tls_->ForChannel(server)
                         : grpc::InsecureChannelCredentials();
}

void CallerProof::AddTo(grpc::ClientContext* context) const {
  // A token in clear text could be read by others on the way.
  if (tls_ != nullptr && !token_.empty()) {
    context->AddMetadata(kTokenKey, absl::StrCat(kTokenPrefix, token_));
  }
  if (!ticket_.empty()) context->AddMetadata(kTicketKey, ticket_);
}

}  // namespace tributary
