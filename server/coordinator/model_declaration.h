#pragma once

#include <string>

#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// In what another rank's declaration of the model differs from the first;
// empty: in nothing.
std::string DeclarationDifference(const v1::DeclareModelRequest& first,
                                  const v1::DeclareModelRequest& other);

}  // namespace tributary
