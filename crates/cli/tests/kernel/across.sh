#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Who calls for a thread is on another CPU, or another process.
sleep 1
calls across
sleep 1
echo "REPORT state $(state)"
