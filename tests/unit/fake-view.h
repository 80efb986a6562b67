/* SPDX-License-Identifier: MIT */
#pragma once

/* An invented file system for tests of the plan, with the rule of service/plan/view.h for links. */

#include "service/plan/view.h"

typedef struct FakeNode {
	const char *path; /* absolute, no links in it; directories on the way are there by themselves */
	mode_t mode;      /* type and permission */
	uid_t uid;
	const char *link; /* the text of a link, or the content of a file */
	dev_t device;
} FakeNode;

/* What is below path is below alias too. */
typedef struct FakeAlias {
	const char *path, *alias;
} FakeAlias;

typedef struct FakeView {
	const FakeNode *nodes;    /* ended by one without path */
	const FakeNode *more;     /* looked at first; may be NULL */
	const FakeAlias *aliases; /* ended by one without path; may be NULL */
	const char *home;         /* canonical; the links in its top level are followed whoever owns them */
	uid_t uid;                /* whose rights readable() judges by: the owner's bits, then the others' */
} FakeView;

/* Return: the table of functions for fake, which must outlive it. */
PlanView fake_view(FakeView *fake);
