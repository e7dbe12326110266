#!/bin/sh
# Runs scenarios on a Debian of another release than this machine's, with or without recommended packages: images are
# made of the programs and libraries of the machine that they are made on, and what is promised must hold on any.
#
#   dist/on-root.sh trixie audio film-make                         the newest release that Andante is tried on
#   dist/on-root.sh bookworm --recommends audio --scheduler andante
#
# A root is made once, by mmdebstrap, below out/roots; without its folder there it is made anew. The script needs
# root, and target/release/andante and andante-lab, built on that release or an older one.
set -eu
cd "$(dirname "$0")/.."

fail() {
	echo "on-root: $1" >&2
	exit 1
}

[ $# -ge 2 ] || fail "name a release and a scenario, such as: dist/on-root.sh trixie audio"
suite=$1
shift
recommends=0
if [ "$1" = --recommends ]; then
	recommends=1
	shift
fi
[ "$(id -u)" -eq 0 ] || fail "only root can make a root and change into it: try sudo"
for binary in andante andante-lab; do
	[ -x target/release/$binary ] || fail "target/release/$binary is missing: make builds it"
done
command -v mmdebstrap >/dev/null || fail "mmdebstrap is missing: apt-get install mmdebstrap"

root=$PWD/out/roots/$suite-$recommends
unmount() {
	for folder in proc sys dev kernels; do
		mountpoint -q "$root/$folder" && umount "$root/$folder" || true
	done
}
# Those of a run that was killed would be emptied with the root, or hide what is mounted now.
unmount
if [ ! -e "$root/made" ]; then
	rm -rf --one-file-system "$root"
	mkdir -p out/roots
	echo "on-root: making a root of $suite: some minutes"
	packages=$(dist/setup.sh list | tr ' ' ',')
	mmdebstrap --quiet --variant=apt --aptopt="APT::Install-Recommends \"$recommends\"" \
		--include="ca-certificates,$packages" "$suite" "$root" ||
		fail "mmdebstrap failed: it says why above"
	touch "$root/made"
fi

trap unmount EXIT
trap 'exit 130' INT TERM
mkdir -p "$root/andante/target/release" "$root/kernels"
mount -t proc proc "$root/proc"
mount -t sysfs sys "$root/sys"
mount --bind /dev "$root/dev"
if [ -n "${ANDANTE_KERNEL_DIR:-}" ]; then
	mount --bind "$ANDANTE_KERNEL_DIR" "$root/kernels"
	export ANDANTE_KERNEL_DIR=/kernels
fi
cp -r scenarios "$root/andante/"
cp target/release/andante target/release/andante-lab "$root/andante/target/release/"
chroot "$root" sh -c 'cd /andante && exec target/release/andante lab run "$@"' lab "$@"
