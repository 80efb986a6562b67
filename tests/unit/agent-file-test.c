/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include "dbus/names.h"
#include "service/plan/agent-file.h"

static size_t read_head(const char *path, char *head)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, head, AGENT_HEAD_BYTES);
	assert_true(n > 0);
	return (size_t)n;
}

static void the_entry_is_known(void **state)
{
	_cleanup_free_ char *head = malloc(AGENT_HEAD_BYTES), *part = NULL;
	size_t n = read_head(ENTRY_PROGRAM, head);

	assert_non_null(head);
	assert_true(agent_file_is_entry(head, n));
	for (const char *const *other =
		     (const char *const[]){ "/bin/sh", "/proc/self/exe", "/etc/passwd", NULL };
	     *other; other++)
		assert_false(agent_file_is_entry(head, read_head(*other, head)));

	/* Whatever is cut off, turned over or made up: an answer, and nothing read beyond the end. */
	n = read_head(ENTRY_PROGRAM, head);
	for (size_t size = 0; size < 2048 && size < n; size++) {
		part = malloc(size + 1);
		assert_non_null(part);
		memcpy(part, head, size);
		(void)agent_file_is_entry(part, size);
		freep(&part);
	}
	for (size_t i = 0; i < 2048 && i < n; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			head[i] = (char)(head[i] ^ (1 << bit));
			(void)agent_file_is_entry(head, n);
			head[i] = (char)(head[i] ^ (1 << bit));
		}
	assert_true(agent_file_is_entry(head, n));
	memcpy(head, "#!/bin", 6);
	assert_false(agent_file_is_entry(head, n));
}

static void first_lines(void **state)
{
	static const struct {
		const char *head;
		int result;
		const char *interpreter, *command;
	} cases[] = {
		{ "", 0, NULL, NULL },
		{ "#", 0, NULL, NULL },
		{ "\177ELF", 0, NULL, NULL },
		{ "node", 0, NULL, NULL },
		{ "#!", -ENOEXEC, NULL, NULL },
		{ "#!\n/bin/sh", -ENOEXEC, NULL, NULL },
		{ "#! \t \n", -ENOEXEC, NULL, NULL },
		{ "#!/bin/sh", 1, "/bin/sh", NULL },
		{ "#!/bin/sh\n", 1, "/bin/sh", NULL },
		{ "#! /bin/bash -e\nx", 1, "/bin/bash", NULL },
		{ "#!/usr/bin/env node\r\n", 1, NULL, "node" },
		{ "#!/usr/bin/env\tnode --flag\n", 1, NULL, "node" },
		{ "#!/usr/bin/env -S node --flag\n", 1, NULL, "node" },
		{ "#!/usr/bin/env -Snode --flag\n", 1, NULL, "node" },
		{ "#!/usr/bin/env --split-string=bun run\n", 1, NULL, "bun" },
		{ "#!/bin/env -i A=1 deno\n", 1, NULL, "deno" },
		{ "#!/usr/bin/env /opt/node\n", 1, "/opt/node", NULL },
		{ "#!/usr/bin/env -i A=1\n", -ENOEXEC, NULL, NULL },
		{ "#!/usr/bin/env\n", -ENOEXEC, NULL, NULL },
	};
	char longest[300];

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(agent_script_done) AgentScript script = { 0 };
		int r = agent_script_parse(cases[i].head, strlen(cases[i].head), &script);

		if (r != cases[i].result)
			fail_msg("'%s' gives %d", cases[i].head, r);
		assert_int_equal(!script.interpreter, !cases[i].interpreter);
		assert_int_equal(!script.command, !cases[i].command);
		if (script.interpreter)
			assert_string_equal(script.interpreter, cases[i].interpreter);
		if (script.command)
			assert_string_equal(script.command, cases[i].command);
	}
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "#!/", 3);
	assert_int_equal(agent_script_parse(longest, sizeof(longest), &(AgentScript){ 0 }), -ENOEXEC);
}

static void scripts_of_our_entry(void **state)
{
	static const struct {
		const char *head;
		bool ours;
	} cases[] = {
		{ "#!/bin/sh\nexec " CS_BIN_DIR "/claude \"$@\"\n", true },
		{ "#!/bin/sh\nexec " CS_BIN_DIR "/claude", true },
		{ "#!/usr/bin/env bash\nset -e\n\t" CS_BIN_DIR "/codex \"$@\"\n", true },
		{ "#!/bin/dash\nexec '" CS_BIN_DIR "/pi' \"$@\"\n", true },
		{ "#!/bin/sh\nexec " CS_ENTRY_PATH "\n", true },
		{ "#!/bin/sh\n# not " CS_BIN_DIR "/claude\nexec /opt/claude \"$@\"\n", false },
		{ "#!/bin/sh\nexec " CS_BIN_DIR "/claude-real \"$@\"\n", false },
		{ "#!/bin/sh\nexec " CS_BIN_DIR "/claude/bin/claude \"$@\"\n", false },
		/* Programs that look where they are installed have such names in them. */
		{ "#!/usr/bin/env node\nconst places = ['" CS_BIN_DIR "/claude'];\n", false },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(agent_script_done) AgentScript script = { 0 };
		size_t n = strlen(cases[i].head);

		assert_int_equal(agent_script_parse(cases[i].head, n, &script), 1);
		if (agent_script_starts_entry(&script, cases[i].head, n) != cases[i].ours)
			fail_msg("'%s' is judged wrongly", cases[i].head);
	}
}

static void packages(void **state)
{
	static const struct {
		const char *program, *package, *node;
	} cases[] = {
		{ "/home/u/.local/share/claude/versions/2.0", NULL, NULL },
		{ "/home/u/.npm/lib/node_modules/@x/y/dist/cli.js", "/home/u/.npm/lib/node_modules/@x/y",
		  "/home/u/.npm/bin/node" },
		{ "/home/u/.npm/lib/node_modules/y/cli.js", "/home/u/.npm/lib/node_modules/y",
		  "/home/u/.npm/bin/node" },
		{ "/home/u/.npm/lib/node_modules/@x/y/node_modules/z/bin/z",
		  "/home/u/.npm/lib/node_modules/@x/y", "/home/u/.npm/bin/node" },
		{ "/home/u/.npm/lib/node_modules/cli.js", "/home/u/.npm/lib/node_modules",
		  "/home/u/.npm/bin/node" },
		{ "/home/u/tool/node_modules/@x/y/cli.js", "/home/u/tool/node_modules", NULL },
		{ "/home/u/mylib/node_modules/y/cli.js", "/home/u/mylib/node_modules", NULL },
		{ "/node_modules/y/cli.js", "/node_modules", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_free_ char *package = NULL, *node = NULL;

		assert_int_equal(agent_package(cases[i].program, &package), 0);
		assert_int_equal(agent_package_node(cases[i].program, &node), 0);
		assert_int_equal(!package, !cases[i].package);
		assert_int_equal(!node, !cases[i].node);
		if (package)
			assert_string_equal(package, cases[i].package);
		if (node)
			assert_string_equal(node, cases[i].node);
	}
}

static void starters(void **state)
{
	_cleanup_free_ char *text = NULL, *none = NULL;
	char longest[300];

	assert_int_equal(agent_starter("/n/node", "/a/b\"c\\d\ne.js", &text), 0);
	assert_string_equal(
		text, "#!/n/node\nimport(require(\"url\").pathToFileURL(\"/a/b\\x22c\\x5cd\\x0ae.js\"));\n");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(agent_starter(longest, "/a", &none), -ENAMETOOLONG);
	assert_int_equal(agent_starter("/a b/node", "/a", &none), -ENAMETOOLONG);
	assert_null(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_entry_is_known),
		cmocka_unit_test(first_lines),
		cmocka_unit_test(scripts_of_our_entry),
		cmocka_unit_test(packages),
		cmocka_unit_test(starters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
