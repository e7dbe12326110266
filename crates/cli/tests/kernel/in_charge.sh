#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Andante takes charge with these options; then what is given is done, the script of a test.
. /andante/common.sh
uptime() { cut -d' ' -f1 /proc/uptime; }
began=$(uptime)
in_charge "$@"
ended=$(uptime)
given
