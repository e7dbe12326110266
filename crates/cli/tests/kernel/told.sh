#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A thread that sleeps is told of its events, by a ring and by a signal, and nothing of that is left behind.
sleep 1
told signal # the first for which the daemon sends any, and listens for that from then on
sleep 1
before=$(files)
told ring
told strange
sleep 3
told left
echo "REPORT files_more $(($(files) - before))"
echo "REPORT state $(state)"
