#!/bin/sh
# Brings forewarm-node from the control plane that made this machine, and takes no other
# program than the one whose sum it was given. systemd tries it again when it fails.
set -eu
umask 022
program=${FOREWARM_ROOT:-}/usr/local/bin/forewarm-node
case $(uname -m) in
# PROGRAMS
*)
	echo "the control plane has no forewarm-node for $(uname -m)" >&2
	exit 1
	;;
esac

is_asked_for() {
	echo "$sum  $1" | sha256sum -c >/dev/null 2>&1
}

if [ -x "$program" ] && is_asked_for "$program"; then
	exit 0
fi
mkdir -p "$(dirname "$program")"
part=$(mktemp "$program.XXXXXX")
trap 'rm -f "$part"' EXIT
curl --fail --silent --show-error --max-time 540 --output "$part" "$url"
if ! is_asked_for "$part"; then
	echo "what $url hands out is another program than when this machine was asked for" >&2
	exit 1
fi
chmod 0755 "$part"
mv -f "$part" "$program"
