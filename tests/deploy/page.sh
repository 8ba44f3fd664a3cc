#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Watches a job through its status page in headless Chromium (Debian's, which it
# installs), while a worker, a server and the coordinator are killed and replaced.
#   tests/deploy/page.sh [PROGRAM_DIR, default build/release/bin]
# AXE is axe.min.js of axe-core (https://github.com/dequelabs/axe-core), which checks the
# accessibility; it is in several packages of PyPI and npm. Without it that part is left
# out. SCREENSHOTS is a folder for the pictures; default: build/page.
set -euo pipefail
cd "$(dirname "$0")/../.."
deploy/install-deps.sh --page > /dev/null
[ -n "${AXE:-}" ] || echo "AXE is not set: the accessibility is not checked"
exec python3 tests/deploy/check_page.py "${1:-build/release/bin}" \
  "${SCREENSHOTS:-build/page}" ${AXE:+"$AXE"}
