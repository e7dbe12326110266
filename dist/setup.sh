#!/bin/sh
# Installs the Debian or Ubuntu packages that Andante needs, if any is missing.
#
#   dist/setup.sh run     to build it and run the laboratory
#   dist/setup.sh deb     to build it and make packages
#   dist/setup.sh test    all of that, and what the tests need; nginx among it, without a server that runs
#   dist/setup.sh list    names what is needed to run what has been built, tests too, and installs nothing
set -eu

# The version of the clang that compiles the BPF part: of those that are here the one that the build
# takes, or else the newest that apt has.
clang_version() {
	for version in 19 20 21 22; do
		if command -v "clang-$version" >/dev/null; then
			echo $version
			return
		fi
	done
	for version in 22 21 20; do
		if apt-cache show "clang-$version" >/dev/null 2>&1; then
			echo $version
			return
		fi
	done
	echo 19
}
clang=$(clang_version)

installed() {
	dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q '^install ok installed'
}

# Wherever root has it: whoever has an nginx, of whichever package, keeps it as it is.
has_nginx() {
	command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || [ -x /usr/local/sbin/nginx ]
}

# The package starts a server on port 80 and has it start at boot, which nobody asked for here. Its scripts ask this
# program first, if there is one (invoke-rc.d(8), deb-systemd-invoke(1p)); it forbids nginx alone, while we install.
policy=/usr/sbin/policy-rc.d
mark="dist/setup.sh of Andante, while it installs nginx"

forbid_nginx() {
	trap permit_nginx EXIT
	trap 'exit 1' HUP INT TERM
	if [ -e $policy ] && ! grep -q "$mark" $policy; then
		# Somebody's own; 101: it forbids that by itself, as in most containers.
		answer=0
		$policy nginx start >/dev/null 2>&1 || answer=$?
		[ $answer -ne 101 ] || return 0
		echo "setup: nginx-light is missing, and your $policy would let it serve on port 80: install it yourself" >&2
		exit 1
	fi
	printf '%s\n' '#!/bin/sh' "# $mark" 'case " $* " in *" nginx "*|*" nginx.service "*) exit 101 ;; esac' |
		$as_root tee $policy >/dev/null
	$as_root chmod 755 $policy
}

# Also when apt-get has failed half-way: then nginx may be there.
permit_nginx() {
	if [ -e $policy ] && grep -q "$mark" $policy; then
		$as_root rm -f $policy
	fi
	has_nginx || return 0
	if command -v systemctl >/dev/null; then
		$as_root systemctl --quiet disable nginx.service
	else
		$as_root update-rc.d nginx disable
	fi
}

needs="gcc make libc6-dev pkg-config libelf-dev zlib1g-dev
	qemu-system-x86 busybox-static e2fsprogs mpv ffmpeg xvfb"
for_packages="dpkg-dev debhelper"
# mmdebstrap and fakeroot make a system to install the packages in. The last four are for the scenario `distributed`,
# and for libandante's examples of that name.
for_tests="nginx-light stress-ng jackd2 g++ python3 dbus gamemode iperf3 iputils-ping curl
	mmdebstrap fakeroot $for_packages
	iproute2 dmsetup libavcodec-dev libavformat-dev libavutil-dev"
if [ "${1:-run}" = list ]; then
	echo $needs $for_tests
	exit 0
fi
command -v "clang-$clang" >/dev/null || needs="$needs clang-$clang"
[ "${1:-run}" != deb ] || needs="$needs $for_packages"
if [ "${1:-run}" = test ]; then
	needs="$needs $for_tests"
	# The sanitizers of the core's tests, and the format check; both do without where apt has none.
	for package in libclang-rt-$clang-dev clang-format-19; do
		! apt-cache show $package >/dev/null 2>&1 || needs="$needs $package"
	done
fi

if ! command -v cargo >/dev/null; then
	echo "setup: no Rust toolchain is on the PATH: install one with rustup (1.88 or newer), then try again" >&2
	exit 1
fi
if ! command -v dpkg-query >/dev/null; then
	echo "setup: this is not Debian or Ubuntu; install by hand:" $needs >&2
	exit 1
fi

missing=
for package in $needs; do
	[ "$package" != nginx-light ] || ! has_nginx || continue
	installed "$package" || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
	as_root=sudo
	if ! command -v sudo >/dev/null; then
		echo "setup: these packages are missing and only root can install them:$missing" >&2
		exit 1
	fi
fi
echo "setup: installing$missing"
export DEBIAN_FRONTEND=noninteractive
case "$missing " in
*" nginx-light "*) forbid_nginx ;;
esac
if ! $as_root apt-get install -y --no-install-recommends $missing; then
	echo "setup: trying again with fresh package lists"
	$as_root apt-get update
	$as_root apt-get install -y --no-install-recommends $missing || {
		echo "setup: apt-get could not install$missing: its own message above says why" >&2
		exit 1
	}
fi
