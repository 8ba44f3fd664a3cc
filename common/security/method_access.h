// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/security/identity.h"

namespace tributary {

// Who may call a method. Every method of every service that a port serves is in
// the one table of this file's source; nobody may call a method that is not
// there.
struct MethodAccess {
  std::string method;  // "/tributary.v1.ParameterService/Pull"
  // The roles that a caller's certificate may have.
  std::vector<PeerRole> roles;
  // The roles that a caller's ticket may have
  // (common/wire/identity/member_ticket.h). Empty: the method asks for no
  // ticket.
  std::vector<PeerRole> ticket_roles;

  bool MayCall(PeerRole role) const;
  bool WantsTicket() const { return !ticket_roles.empty(); }
  bool MayCallWithTicket(PeerRole role) const;
};

const std::vector<MethodAccess>& AllMethodAccess();

// Null: the method is not in the table.
const MethodAccess* AccessTo(absl::string_view method);

}  // namespace tributary
