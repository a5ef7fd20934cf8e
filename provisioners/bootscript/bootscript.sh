#!/bin/sh
# Forewarm: installs the daemon of this machine's node, and keeps it running. It works with
# systemd, and once more changes nothing.
set -eu
# SETTINGS
umask 077
mkdir -p "$root/etc/forewarm"
printf '%s' "$join_token" >"$root/etc/forewarm/join-token"
cat >"$root/etc/forewarm/forewarm-node.yaml" <<FOREWARM_END
url: $url
node: $node
token_file: /etc/forewarm/join-token
FOREWARM_END

umask 022
units=$root/etc/systemd/system
mkdir -p "$units" "$root/usr/local/sbin"
cat >"$units/forewarm-node.service" <<'FOREWARM_END'
# UNIT
FOREWARM_END

# fetch writes the program that brings the daemon, unless the image has it.
fetch() {
	mkdir -p "$units/forewarm-node.service.d"
	cat >"$units/forewarm-node.service.d/fetch.conf" <<'FOREWARM_END'
[Service]
ExecStartPre=+/usr/local/sbin/forewarm-node-fetch
TimeoutStartSec=20min
FOREWARM_END
	cat >"$root/usr/local/sbin/forewarm-node-fetch" <<'FOREWARM_END'
# FETCH
FOREWARM_END
	chmod 0755 "$root/usr/local/sbin/forewarm-node-fetch"
}
[ "$from" = image ] || fetch

systemctl daemon-reload
systemctl enable forewarm-node.service
systemctl start --no-block forewarm-node.service
