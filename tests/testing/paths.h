#pragma once

#include <string>

namespace tributary::testing {

// A file of the source tree: SourceFile("docs/formats.md"). The tree is that of
// the build or, where a test runs on another machine, TRIBUTARY_SOURCE_DIR.
std::string SourceFile(const std::string& name);
// A program of this build: Program("tributary-worker").
std::string Program(const std::string& name);

}  // namespace tributary::testing
