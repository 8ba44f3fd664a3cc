# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by run.sh: the images of deploy/, without a registry and without
# compiling. All their names begin with $tag.

# Debian's sources as this machine has them: "URI CODENAME COMPONENT" a line.
debian_sources() {
  apt-get indextargets 'Created-By: Packages' 'Origin: Debian' \
    --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' | grep ' bookworm'
}

# Like debian:bookworm-slim, a minimal system without documentation that starts
# no services.
make_base() {
  local root=$work/base mirror
  mirror=$(debian_sources | sed -n 's/ bookworm main$//p' | head -n 1)
  if [ -z "$mirror" ]; then
    echo "no source of Debian 12 in this machine's apt configuration" >&2
    return 1
  fi
  debootstrap --variant=minbase bookworm "$root" "$mirror" > "$work/debootstrap.log" 2>&1 || {
    tail -n 5 "$work/debootstrap.log" >&2
    return 1
  }
  debian_sources | sed 's/^/deb /' > "$root/etc/apt/sources.list"
  apt-config dump | grep -E '^Acquire::https?::Proxy ' > "$root/etc/apt/apt.conf.d/proxy" || true
  printf 'path-exclude %s\n' '/usr/share/doc/*' '/usr/share/man/*' '/usr/share/locale/*' \
    > "$root/etc/dpkg/dpkg.cfg.d/slim"
  printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
  chmod +x "$root/usr/sbin/policy-rc.d"
  rm -rf "$root"/usr/share/{doc,man,locale}/* "$root"/var/lib/apt/lists/* \
    "$root"/var/cache/apt/* "$root"/var/log/*.log
  tar -C "$root" -c . | docker import - "$tag-base" > /dev/null
  rm -rf "$root"
}

# The programs that are built already, as the stage "build" would leave them.
import_programs() {
  deploy/docker/stage.sh "$build" "$work/programs/opt/tributary"
  tar -C "$work/programs" -c . | docker import - "$tag-binaries" > /dev/null
}

build_images() {
  compose build --quiet datasets coordinator > "$work/build.log" 2>&1 || {
    tail -n 30 "$work/build.log" >&2
    return 1
  }
  docker build --quiet --build-arg BASE="$tag-base" -t "$tag-prometheus" \
    - < tests/deploy/Dockerfile.prometheus > /dev/null
}

# The image for GPUs on a base without CUDA: its steps, not its kernels.
build_cuda_image() {
  docker build --quiet -f deploy/docker/Dockerfile.cuda -t "$tag-cuda" \
    --build-arg BUILD_BASE="$tag-base" --build-arg BASE="$tag-base" \
    --build-arg BINARIES="$tag-binaries" . > /dev/null
}

print_sizes() {
  docker images --format '{{.Size}}  {{.Repository}}' | grep "  $tag" | sort -k2
}

remove_images() {
  docker images --format '{{.Repository}}:{{.Tag}}' | grep "^$tag" |
    xargs -r docker rmi -f > /dev/null
}
