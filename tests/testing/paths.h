// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tributary::testing {

// The path of a file in the source tree: SourceFile("docs/job-file.md"). The
// tree is the build's, or TRIBUTARY_SOURCE_DIR when a test runs on another
// machine.
std::string SourceFile(const std::string& name);
// The path of a program of this build: Program("tributary-worker").
std::string Program(const std::string& name);

}  // namespace tributary::testing
