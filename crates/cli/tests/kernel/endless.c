// SPDX-License-Identifier: GPL-2.0
/*
 * An endless loop: five hundred instructions that do nothing, which the virtual machine executes at
 * once, then a jump. A shell's loop would be the same to the scheduler, and take fifty times as long.
 */
int main(void)
{
	for (;;)
		__asm__ volatile(".rept 500; nop; .endr");
}
