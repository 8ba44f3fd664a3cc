#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Exits with 0 when /healthz of the daemon in this container answers 200; otherwise
# prints the answer and exits with 1. The default HOST:PORT is the one
# at which daemons in containers answer only health checks (--health-listen).
#   tributary-healthcheck [HOST:PORT]
address=${1:-127.0.0.1:7091}
exec 3<> "/dev/tcp/${address%:*}/${address##*:}" || exit 1
printf 'GET /healthz HTTP/1.0\r\nHost: %s\r\n\r\n' "$address" >&3
read -r -t 2 _ code _ <&3
[ "$code" = 200 ] && exit 0
timeout 1 cat <&3
exit 1
