// SPDX-License-Identifier: GPL-2.0
/* Runs the tests of the files linked with it. */
#define TEST_MAIN
#include "test.h"
