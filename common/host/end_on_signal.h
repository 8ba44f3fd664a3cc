#pragma once

namespace tributary {

// Lets SIGTERM and SIGINT end this process at once: killed by the signal, and
// as process 1 of a container, which no signal kills that it does not handle,
// with exit code 128 + signal. Call it first in main.
//
// For daemons that may die at any point anyhow: what they leave behind is
// written aside and renamed, and the others see their lease run out.
void EndOnSignal();

}  // namespace tributary
