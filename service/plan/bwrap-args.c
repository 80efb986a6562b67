/* SPDX-License-Identifier: MIT */

/* The plan in bwrap's own words (bwrap(1)); bwrap performs the operations in the order of its arguments. */

#include "service/plan/bwrap-args.h"

#include <assert.h>

static const char *const flags[] = {
	"--unshare-user",
	"--unshare-pid",
	"--unshare-ipc",
	"--unshare-uts",
	/* The one that a kernel may lack. The network namespace is the holder's, and inherited. */
	"--unshare-cgroup-try",
	"--die-with-parent",
	"--as-pid-1",
	"--cap-drop",
	"ALL",
};

typedef struct Writer {
	BwrapArguments *arguments;
	FILE *stream;
	int first_fd;
} Writer;

static void word(Writer *w, const char *text)
{
	/* With its NUL, which ends the argument. An error is found when the stream is closed. */
	(void)fwrite(text, 1, strlen(text) + 1, w->stream);
}

static void permissions(Writer *w, mode_t mode)
{
	char text[8];

	word(w, "--perms");
	snprintf(text, sizeof(text), "%04o", (unsigned)mode & 07777);
	word(w, text);
}

/* Give entry the next descriptor and write its number. */
static void descriptor(Writer *w, const Entry *entry)
{
	BwrapArguments *arguments = w->arguments;
	char text[16];

	snprintf(text, sizeof(text), "%d", w->first_fd + (int)arguments->n_fds);
	word(w, text);
	arguments->fds[arguments->n_fds] = entry->kind == ENTRY_BIND ? entry->source_fd : FD_NONE;
	arguments->entries[arguments->n_fds++] = entry;
}

static void entry_write(Writer *w, const Entry *entry)
{
	if (entry->prepared)
		return;
	switch (entry->kind) {
	case ENTRY_BIND:
		if (entry->device) {
			word(w, "--dev-bind");
			word(w, entry->source);
		} else {
			word(w, entry->mode == ENTRY_RW ? "--bind-fd" : "--ro-bind-fd");
			descriptor(w, entry);
		}
		break;
	case ENTRY_TMPFS:
		permissions(w, entry->permissions ?: 0755);
		word(w, "--tmpfs");
		break;
	case ENTRY_DEV:
		word(w, "--dev");
		break;
	case ENTRY_PROC:
		word(w, "--proc");
		break;
	case ENTRY_LINK:
		word(w, "--symlink");
		word(w, entry->data);
		break;
	case ENTRY_FILE:
		permissions(w, entry->permissions ?: 0444);
		word(w, "--ro-bind-data");
		descriptor(w, entry);
		break;
	case ENTRY_DIRECTORY:
		permissions(w, entry->permissions ?: 0755);
		word(w, "--dir");
		break;
	case ENTRY_DESCRIPTOR:
		return;
	case ENTRY_KIND_MAX:
		assert(false);
	}
	word(w, entry->destination);
	if (entry->kind == ENTRY_PROC && entry->mode == ENTRY_RO) {
		word(w, "--remount-ro");
		word(w, entry->destination);
	}
}

void bwrap_arguments_done(BwrapArguments *arguments)
{
	free(arguments->text);
	free(arguments->fds);
	free(arguments->entries);
	*arguments = (BwrapArguments){ 0 };
}

int bwrap_arguments_make(const Plan *plan, int first_fd, BwrapArguments *ret)
{
	_cleanup_(bwrap_arguments_done) BwrapArguments arguments = { 0 };

	assert(first_fd > STDERR_FILENO);
	arguments.fds = calloc(plan->n_entries + 1, sizeof(*arguments.fds));
	arguments.entries = calloc(plan->n_entries + 1, sizeof(*arguments.entries));
	if (!arguments.fds || !arguments.entries)
		return -ENOMEM;

	Writer w = { .arguments = &arguments, .first_fd = first_fd };
	w.stream = open_memstream(&arguments.text, &arguments.size);
	if (!w.stream)
		return -ENOMEM;
	for (size_t i = 0; i < ELEMENTSOF(flags); i++)
		word(&w, flags[i]);
	for (size_t i = 0; i < plan->n_entries; i++)
		entry_write(&w, &plan->entries[i]);
	bool failed = ferror(w.stream);
	if (fclose(w.stream) != 0 || failed)
		return -ENOMEM;

	*ret = arguments;
	arguments = (BwrapArguments){ 0 };
	return 0;
}
