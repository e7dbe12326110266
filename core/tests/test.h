/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The test harness, all of it.
 *
 *      TEST(name) { CHECK(condition); CHECK_EQ(got, wanted); }
 *
 * registers itself and leaves at its first failed check. A random test asks test_seed() for its
 * seed and calls test_scenario() before each case, so that a failure names the seed to run again.
 * One file defines TEST_MAIN and gets the runner: core-tests [--seed N] [--only SUBSTRING].
 */
#ifndef ANDANTE_TEST_H
#define ANDANTE_TEST_H

#include "../core.h"

struct test {
	const char *name;
	void (*run)(void);
	struct test *next;
};

void test_register(struct test *test);
_Noreturn void test_fail(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The seed that random tests start from: --seed, or a constant. */
u64 test_seed(void);

/* Names the random case about to run, for the message of a failure. */
void test_scenario(u64 seed);

/* Adds a finding to the summary line. */
void test_remark(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define TEST(name)                                                                                 \
	static void name(void);                                                                    \
	__attribute__((constructor)) static void register_##name(void)                             \
	{                                                                                          \
		static struct test test = {#name, name, NULL};                                     \
		test_register(&test);                                                              \
	}                                                                                          \
	static void name(void)

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			test_fail(__FILE__, __LINE__, "%s", #condition);                           \
	} while (0)

#define CHECK_EQ(got, wanted)                                                                      \
	do {                                                                                       \
		long long got_ = (long long)(got), wanted_ = (long long)(wanted);                  \
		if (got_ != wanted_)                                                               \
			test_fail(__FILE__, __LINE__, "%s is %lld, not %s = %lld", #got, got_,     \
				  #wanted, wanted_);                                               \
	} while (0)

#ifdef TEST_MAIN

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct test *first_test, **last_test = &first_test;
static jmp_buf leave_test;
static u64 first_seed = 1, scenario_seed;
static bool in_scenario;
static char remarks[4096];

void test_register(struct test *test)
{
	*last_test = test;
	last_test = &test->next;
}

u64 test_seed(void)
{
	return first_seed;
}

void test_scenario(u64 seed)
{
	scenario_seed = seed;
	in_scenario = true;
}

void test_fail(const char *file, int line, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s:%d: ", file, line);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	if (in_scenario)
		fprintf(stderr, " (again with --seed %llu)", (unsigned long long)scenario_seed);
	fputc('\n', stderr);
	longjmp(leave_test, 1);
}

void test_remark(const char *format, ...)
{
	size_t used = strlen(remarks);
	va_list arguments;

	used += snprintf(remarks + used, sizeof(remarks) - used, "; ");
	va_start(arguments, format);
	vsnprintf(remarks + used, sizeof(remarks) - used, format, arguments);
	va_end(arguments);
}

static bool passes(struct test *test)
{
	in_scenario = false;
	if (setjmp(leave_test)) {
		fprintf(stderr, "failed: %s\n", test->name);
		return false;
	}
	test->run();
	return true;
}

int main(int count, char **arguments)
{
	u32 passed = 0, failed = 0;
	const char *only = "";

	for (int i = 1; i + 1 < count; i += 2) {
		if (!strcmp(arguments[i], "--seed"))
			first_seed = strtoull(arguments[i + 1], NULL, 0);
		else if (!strcmp(arguments[i], "--only"))
			only = arguments[i + 1];
	}
	for (struct test *test = first_test; test; test = test->next) {
		if (!strstr(test->name, only))
			continue;
		if (passes(test))
			passed++;
		else
			failed++;
	}
	printf("core: %u tests passed, %u failed%s\n", passed, failed, remarks);
	return failed || !passed;
}

#endif

#endif
