/* SPDX-License-Identifier: MIT */
#pragma once

/* Policy rules: a namespace starts with the kernel's own, and ours keeps exactly those. */

#include "service/net/denial.h"
#include "service/net/message.h"

typedef struct Rule {
	uint8_t family, action, tos, source_length, destination_length;
	uint32_t priority, table, flags;
	uint8_t protocol;
	uint16_t attribute; /* the first attribute that narrows or redirects, or 0 */
} Rule;

/* Return: 0; -EAFNOSUPPORT for another family; -EBADMSG. */
int rule_decode(const struct nlmsghdr *header, Rule *ret);
/* "a user range", "a mark", ... Return: buffer or a constant. */
#define RULE_ATTRIBUTE_TEXT_MAX 32u
const char *rule_attribute_to_string(uint16_t attribute, char buffer[static RULE_ATTRIBUTE_TEXT_MAX]);
/*
 * The number of the kernel's own rule (of its family) that this one is, from 0 to RULES_KERNEL_MAX - 1, or
 * -EREMCHG with *ret_problem saying what is wrong with it.
 */
#define RULES_KERNEL_MAX 3u
int rule_is_kernels(const Rule *rule, char **ret_problem);
/* How many the kernel makes: three for AF_INET, two for AF_INET6 (ip-rule(8)). */
unsigned rules_of_kernel(uint8_t family);
uint32_t rule_kernel_priority(unsigned number);

/*
 * A new namespace keeps its local table inside the main one, until the first rule comes (fib_unmerge() of the
 * kernel): add one that says what the kernel's own does, and take it away again. The tables stay apart.
 */
int rule_step_tables(Denial *denial, char **ret_problem);
