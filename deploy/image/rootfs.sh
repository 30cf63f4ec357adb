#!/bin/sh
# Builds the root file system of the image: rootfs.sh TARGET, in a built clone (npm ci, npm run console, npm run build). It contains Node with
# the libraries that it loads, the program with its runtime dependencies, and nothing else: no shell, no package manager. The Dockerfile calls this,
# and test/deploy/image.night.test.ts starts a gateway in the result. NODE is the Node to include.
set -eu
umask 022

target=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
node=${NODE:-$(command -v node)}
# The user of the gateway, who owns nothing but the data folder.
id=1000

mkdir -p "$target/app/console" "$target/config" "$target/dev" "$target/etc" "$target/proc" "$target/sys" "$target/tmp" "$target/usr/bin"
chmod 1777 "$target/tmp"
install -d -m 0700 -o "$id" -g "$id" "$target/data"
printf 'root:x:0:0:root:/:/sbin/nologin\nsluice:x:%s:%s:sluice:/data:/sbin/nologin\n' "$id" "$id" >"$target/etc/passwd"
printf 'root:x:0:\nsluice:x:%s:\n' "$id" >"$target/etc/group"
printf 'hosts: files dns\n' >"$target/etc/nsswitch.conf"

for part in bin dist package.json LICENSE; do cp -R "$source/$part" "$target/app/"; done
# Without a list of sources the built files are the program, as in a package.
rm -f "$target/app/dist/sources.json"
cp -R "$source/console/built" "$target/app/console/"

# The runtime dependencies of the lock file that are installed here; Node itself is not taken from npm.
"$node" -e '
  const { packages } = JSON.parse(require("node:fs").readFileSync(process.argv[1] + "/package-lock.json", "utf8"))
  for (const [path, { dev, devOptional, link }] of Object.entries(packages))
    if (/^node_modules\/(?!node-linux-)/.test(path) && !dev && !devOptional && !link) console.log(path)
' "$source" | while read -r path; do
  [ -d "$source/$path" ] || continue
  mkdir -p "$target/app/$(dirname "$path")"
  cp -R "$source/$path" "$target/app/$(dirname "$path")/"
done
find "$target/app/node_modules" -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -path '*musl*' \) -delete

cp -L "$node" "$target/usr/bin/node"
chmod 0755 "$target/usr/bin/node"
# The command by its name. The first line of bin/sluice.mjs needs /usr/bin/env, which is not here.
printf '#!/usr/bin/node\nimport("/app/bin/sluice.mjs")\n' >"$target/usr/bin/sluice"
chmod 0755 "$target/usr/bin/sluice"
# The libraries of Node and of the native modules, with the loader, at the paths where the loader looks for them.
{ ldd "$node"; find "$target/app/node_modules" -name '*.node' -exec ldd {} \;; } |
  sed -n 's/.*=> \(\/[^ ]*\) (.*/\1/p; s/^[[:space:]]*\(\/[^ ]*\) (.*/\1/p' | sort -u |
  while read -r library; do
    mkdir -p "$target$(dirname "$library")"
    cp -L "$library" "$target$library"
  done
