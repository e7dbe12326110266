#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A frame that takes more than those before, announced or not, beside another program and endless loops.
hog 4
echo "REPORT longest $(session surge 2)"
