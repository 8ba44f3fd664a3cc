#pragma once

#include <string>
#include <vector>

#include "tributary/v1/grpc_services.pb.h"

namespace tributary {

// What a server tells of its services and messages to tools that have no proto
// files, grpcurl and the like: `services` by name, and the files that this
// program was built with. There are no extensions.
v1::ReflectionResponse AnswerReflection(
    const v1::ReflectionRequest& request,
    const std::vector<std::string>& services);

}  // namespace tributary
