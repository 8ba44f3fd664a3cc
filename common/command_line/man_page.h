// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/command_line/command_description.h"

namespace tributary {

// The manual page (man(7), section 1) of a program, from the same definition as
// its --help: the description, the options, and each command with its own.
// `version`: "tributary 0.1.0". `date`: "2026-11-25".
std::string ManPage(const CommandDescription& program,
                    const std::string& version, const std::string& date);

// Lines of text with their line breaks, as descriptions and footers have them,
// in man(7): lines become paragraphs, and indented lines stay as they are.
std::string ManText(const std::string& text);

}  // namespace tributary
