/* SPDX-License-Identifier: MIT */
#include "dbus/ahead.h"

#include <sys/stat.h>

#include "dbus/names.h"

bool ahead_is_entry(const char *path)
{
	_cleanup_fclose_ FILE *one = fopen(path, "re"), *other = fopen(CS_ENTRY_PATH, "re");
	struct stat st, entry;
	int c;

	if (!one || !other || fstat(fileno(one), &st) < 0 || fstat(fileno(other), &entry) < 0 ||
	    st.st_size != entry.st_size)
		return false;
	while ((c = getc_unlocked(one)) != EOF)
		if (c != getc_unlocked(other))
			return false;
	return true;
}

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

int ahead_find(const char *path, const char *name, char **ret)
{
	*ret = NULL;
	while (path) {
		const char *end = strchrnul(path, ':');
		_cleanup_free_ char *program = NULL;

		/* An empty entry is the directory where one stands. */
		if (asprintf(&program, "%.*s%s%s", (int)(end - path), path, end == path ? "./" : "/", name) <
		    0) {
			program = NULL;
			return -ENOMEM;
		}
		if (is_program(program)) {
			if (!ahead_is_entry(program))
				*ret = TAKE_PTR(program);
			return 0;
		}
		path = *end ? end + 1 : NULL;
	}
	return 0;
}

const char *ahead_path(char *const *environment)
{
	for (; environment && *environment; environment++) {
		const char *value = starts_with(*environment, "PATH=");

		if (value)
			return value;
	}
	return NULL;
}
