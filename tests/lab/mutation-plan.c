/* SPDX-License-Identifier: MIT */
#include "tests/lab/mutation.h"

#include <fcntl.h>
#include <sys/stat.h>

/* What no session gives by itself; each is added in turn. */
static const char *const foreign[] = {
	"GH_TOKEN",      "GITHUB_TOKEN",          "OPENAI_API_KEY", "ANTHROPIC_API_KEY",
	"SSH_AUTH_SOCK", "AWS_SECRET_ACCESS_KEY", "DISPLAY",        "WAYLAND_DISPLAY",
	"LD_PRELOAD",    "LAB_OF_NOBODY",
};

/* ---- ways to change an entry ---- */

/* Each returns whether it can be done; changed: do it. */
typedef struct Way {
	const char *name;
	bool (*change)(const Entry *entry, Entry *changed);
} Way;

static bool is_mount_of_bytes(const Entry *entry)
{
	return entry->kind == ENTRY_FILE || entry->kind == ENTRY_LINK;
}

/* A read-only mount that the agent could write. */
static bool make_writable(const Entry *entry, Entry *changed)
{
	bool bind = entry->kind == ENTRY_BIND && !entry->device && entry->source_fd >= 0;

	if (entry->mode == ENTRY_RW || (!bind && (entry->kind != ENTRY_PROC || entry->mode != ENTRY_RO)))
		return false;
	if (changed)
		changed->mode = ENTRY_RW;
	return true;
}

/* What the machine has there, to be written, in the place of something of the jail's own. */
static bool show_machine(const Entry *entry, Entry *changed)
{
	int fd = FD_NONE;
	struct stat st;

	switch (entry->kind) {
	case ENTRY_TMPFS:
	case ENTRY_FILE:
	case ENTRY_DEV:
	case ENTRY_PROC:
		break;
	case ENTRY_BIND:
		/* A directory of the jail's own, for this workspace alone. */
		if (entry->device || !entry->source || streq(entry->source, entry->destination) ||
		    !strstr(entry->source, "/.local/state/claude-sandbox/projects/"))
			return false;
		break;
	default:
		return false;
	}
	fd = open(entry->destination, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (fstat(fd, &st) < 0 || S_ISLNK(st.st_mode) || !changed) {
		bool can = !changed && !S_ISLNK(st.st_mode);

		(void)close(fd);
		return can;
	}
	changed->device = entry->kind == ENTRY_DEV;
	changed->kind = ENTRY_BIND;
	changed->mode = ENTRY_RW;
	changed->source = changed->destination;
	changed->source_fd = fd;
	return true;
}

/* Another object of the same type, where a bind shows one of the machine's. */
static bool show_another(const Entry *entry, Entry *changed)
{
	struct stat st;
	static char *directory;

	if (entry->kind != ENTRY_BIND || entry->device || entry->source_fd < 0 ||
	    streq(entry->destination, "/") || fstat(entry->source_fd, &st) < 0 ||
	    (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
		return false;
	if (!changed)
		return true;
	/* A directory of this user's, in which bwrap can make what is mounted below. */
	if (asprintf(&directory, "/srv/another-%u/XXXXXX", (unsigned)getuid()) < 0 || !mkdtemp(directory))
		abort();
	changed->source = S_ISDIR(st.st_mode) ? directory : (char *)"/etc/passwd";
	changed->source_fd = open(changed->source, O_PATH | O_CLOEXEC);
	return true;
}

static bool change_bytes(const Entry *entry, Entry *changed)
{
	static char bytes[] = "/another";

	if (!is_mount_of_bytes(entry))
		return false;
	if (changed) {
		changed->data = bytes;
		changed->data_size = strlen(bytes);
	}
	return true;
}

/* More than was meant, for everybody. */
static bool loosen_mode(const Entry *entry, Entry *changed)
{
	mode_t mode = entry->permissions, loose;

	if (entry->kind == ENTRY_FILE)
		mode = mode ?: 0444;
	else if (entry->kind == ENTRY_TMPFS || entry->kind == ENTRY_DIRECTORY)
		mode = mode ?: 0755;
	else
		return false;
	loose = mode & S_ISVTX ? 0777 : mode | 0022;
	if (changed)
		changed->permissions = loose;
	return loose != mode;
}

static const Way ways[] = {
	{ "writable", make_writable },   { "the machine's", show_machine }, { "another's", show_another },
	{ "other bytes", change_bytes }, { "looser mode", loosen_mode },
};

/* ---- the list ---- */

static void offer_entry(size_t index, const Entry *entry)
{
	const char *what = entry_kind_to_string(entry->kind), *mode = entry_mode_to_string(entry->mode);

	switch (entry->kind) {
	case ENTRY_DESCRIPTOR:
		/* The caller's own: nothing is mounted. */
		return;
	case ENTRY_BIND:
	case ENTRY_TMPFS:
	case ENTRY_DEV:
	case ENTRY_PROC:
	case ENTRY_LINK:
	case ENTRY_FILE:
	case ENTRY_DIRECTORY:
	case ENTRY_KIND_MAX:
		break;
	}
	mutation_offer("entry", index, "dropped", "%s\t%s %s\t%s", entry->destination, what, mode,
		       entry->origin);
	for (size_t i = 0; i < ELEMENTSOF(ways); i++)
		if (ways[i].change(entry, NULL))
			mutation_offer("entry", index, ways[i].name, "%s\t%s %s\t%s", entry->destination,
				       what, mode, entry->origin);
}

static void offer_all(const Plan *plan)
{
	for (size_t i = 0; i < plan->n_entries; i++)
		offer_entry(i, &plan->entries[i]);
	for (size_t i = 0; i < plan->n_variables; i++) {
		mutation_offer("variable", i, "dropped", "%s", plan->variables[i].name);
		mutation_offer("variable", i, "other value", "%s", plan->variables[i].name);
	}
	for (size_t i = 0; i < ELEMENTSOF(foreign); i++)
		mutation_offer("foreign variable", i, "added", "%s", foreign[i]);
}

/* ---- the change ---- */

static void entry_mutate(const Plan *plan, Plan *changed)
{
	size_t index = mutation.index;
	bool done = false;

	if (index >= plan->n_entries)
		abort();
	if (mutation_how("dropped")) {
		memmove(&changed->entries[index], &changed->entries[index + 1],
			(plan->n_entries - index - 1) * sizeof(Entry));
		changed->n_entries--;
		return;
	}
	for (size_t i = 0; i < ELEMENTSOF(ways); i++)
		if (mutation_how(ways[i].name))
			done = ways[i].change(&plan->entries[index], &changed->entries[index]);
	if (!done)
		abort();
}

static void variable_mutate(const Plan *plan, Plan *changed)
{
	size_t index = mutation.index;

	if (mutation_is("foreign variable")) {
		if (index >= ELEMENTSOF(foreign))
			abort();
		changed->variables[changed->n_variables++] =
			(PlanVariable){ (char *)foreign[index], (char *)"leaked", (char *)"nobody" };
		return;
	}
	if (index >= plan->n_variables)
		abort();
	if (mutation_how("other value")) {
		changed->variables[index].value = (char *)"another";
		return;
	}
	memmove(&changed->variables[index], &changed->variables[index + 1],
		(plan->n_variables - index - 1) * sizeof(PlanVariable));
	changed->n_variables--;
}

int mutation_plan(const Plan *plan, Plan *ret)
{
	Plan changed = *plan;

	offer_all(plan);
	changed.entries = calloc(plan->n_entries + 1, sizeof(Entry));
	changed.variables = calloc(plan->n_variables + 1, sizeof(PlanVariable));
	if (!changed.entries || !changed.variables)
		return -ENOMEM;
	memcpy(changed.entries, plan->entries, plan->n_entries * sizeof(Entry));
	memcpy(changed.variables, plan->variables, plan->n_variables * sizeof(PlanVariable));
	if (mutation_is("entry"))
		entry_mutate(plan, &changed);
	if (mutation_is("variable") || mutation_is("foreign variable"))
		variable_mutate(plan, &changed);
	*ret = changed;
	return 0;
}

void mutation_plan_done(Plan *changed)
{
	/* What a changed entry opened goes with this process. */
	free(changed->entries);
	free(changed->variables);
}
