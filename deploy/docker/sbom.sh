#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints what this system or image is made of as an SPDX 2.3 document in JSON: every
# Debian package with its version and source, and the programs of Tributary with their
# SHA-256. The images have it as /usr/share/doc/tributary/sbom.spdx.json.
#   sbom.sh NAME VERSION [PROGRAM...]
# Source: https://spdx.github.io/spdx-spec/v2.3/
set -eu
name=$1 version=$2
shift 2
distribution=$(. /etc/os-release && echo "$ID")
# Packages contain no quotes or backslashes in these fields (Debian Policy 5.6).
packages=$(dpkg-query -W -f '    {"SPDXID": "SPDXRef-${Package}-${Architecture}", "name": "${Package}", "versionInfo": "${Version}", "downloadLocation": "NOASSERTION", "filesAnalyzed": false, "sourceInfo": "built from ${source:Package} ${source:Version}", "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "pkg:deb/DISTRIBUTION/${Package}@${Version}?arch=${Architecture}"}]},\n' |
  sed -e "s#pkg:deb/DISTRIBUTION/#pkg:deb/$distribution/#" -e ':again' -e 's/\("SPDXID": "[^"]*\)[^A-Za-z0-9.":_ -]\([^"]*"\)/\1-\2/; tagain' \
    -e 's/\("SPDXID": "[^"]*\)_\([^"]*"\)/\1-\2/; tagain')
files=
made=
for program in "$@"; do
  sum=$(sha256sum "$program" | cut -d ' ' -f 1)
  id=SPDXRef-file-$(basename "$program" | tr -c 'A-Za-z0-9.\n-' '-')
  files="$files${files:+,
}    {\"SPDXID\": \"$id\", \"fileName\": \"$program\", \"checksums\": [{\"algorithm\": \"SHA1\", \"checksumValue\": \"$(sha1sum "$program" | cut -d ' ' -f 1)\"}, {\"algorithm\": \"SHA256\", \"checksumValue\": \"$sum\"}]}"
  made="$made,
    {\"spdxElementId\": \"$id\", \"relationshipType\": \"GENERATED_FROM\", \"relatedSpdxElement\": \"SPDXRef-tributary\"}"
done
depends=$(printf '%s\n' "$packages" | sed -n 's/.*"SPDXID": "\([^"]*\)".*/,\
    {"spdxElementId": "SPDXRef-tributary", "relationshipType": "DEPENDS_ON", "relatedSpdxElement": "\1"}/p')
cat <<JSON
{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "$name-$version",
  "documentNamespace": "https://tributary.dev/spdx/$name-$version-$(cat /proc/sys/kernel/random/uuid)",
  "creationInfo": {
    "created": "$(date -u +%Y-%m-%dT%H:%M:%SZ)",
    "creators": ["Tool: tributary-sbom-$version"]
  },
  "packages": [
$packages
    {"SPDXID": "SPDXRef-tributary", "name": "$name", "versionInfo": "$version", "downloadLocation": "NOASSERTION", "filesAnalyzed": false, "licenseDeclared": "Apache-2.0", "licenseConcluded": "Apache-2.0", "copyrightText": "NOASSERTION"}
  ],
  "files": [
$files
  ],
  "relationships": [
    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-tributary"}$made$depends
  ]
}
JSON
