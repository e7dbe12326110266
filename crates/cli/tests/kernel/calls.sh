#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Calls to the scheduler: what they cost who calls and who does not, and how soon they are heard.
sleep 1
calls cost
calls wait
sleep 3
calls bystander
echo "REPORT state $(state)"
