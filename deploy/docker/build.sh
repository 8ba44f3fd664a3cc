#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds Tributary in an image and leaves the output of stage.sh.
#   deploy/docker/build.sh PRESET DESTINATION
set -euo pipefail
cd "$(dirname "$0")/../.."
preset=$1 destination=$2

source deploy/steps.sh
part "configure" cmake --preset "$preset" -DTRIBUTARY_BUILD_TESTS=OFF
part "build" cmake --build --preset "$preset"
part "stage" deploy/docker/stage.sh "build/$preset" "$destination"
