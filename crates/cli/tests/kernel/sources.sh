#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Data on sockets as a source of events.
sleep 1
calls data
sleep 3
echo "REPORT state $(state)"
