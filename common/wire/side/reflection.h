// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tributary/v1/grpc_services.pb.h"

namespace tributary {

// Answers server reflection: describes this server's services and messages to
// tools without proto files, for example grpcurl. `services` lists the service
// names; the descriptors are those of this program. There are no extensions.
v1::ReflectionResponse AnswerReflection(
    const v1::ReflectionRequest& request,
    const std::vector<std::string>& services);

}  // namespace tributary
