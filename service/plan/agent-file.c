/* SPDX-License-Identifier: MIT */
#include "service/plan/agent-file.h"

#include <elf.h>

#include "dbus/names.h"

#define SCRIPT_LINE_MAX 255u /* BINPRM_BUF_SIZE of the kernel, less the end */
#define BLANKS " \t"
#define MODULES "/node_modules/"

/* Notes are name and descriptor, each filled up to 4 bytes (elf(5)). */
static bool notes_have_ours(const char *notes, size_t size)
{
	while (size >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		size_t name, all;

		memcpy(&note, notes, sizeof(note));
		name = ((size_t)note.n_namesz + 3) & ~(size_t)3;
		all = sizeof(note) + name + (((size_t)note.n_descsz + 3) & ~(size_t)3);
		if (all > size)
			return false;
		if (note.n_namesz == sizeof(CS_ENTRY_NOTE) &&
		    memcmp(notes + sizeof(note), CS_ENTRY_NOTE, sizeof(CS_ENTRY_NOTE)) == 0)
			return true;
		notes += all;
		size -= all;
	}
	return false;
}

bool agent_file_is_entry(const void *head, size_t size)
{
	Elf64_Ehdr header;

	if (size < sizeof(header))
		return false;
	memcpy(&header, head, sizeof(header));
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phoff > size)
		return false;
	for (size_t i = 0; i < header.e_phnum; i++) {
		size_t at = (size_t)header.e_phoff + i * sizeof(Elf64_Phdr);
		Elf64_Phdr segment;

		if (at + sizeof(segment) > size)
			return false;
		memcpy(&segment, (const char *)head + at, sizeof(segment));
		if (segment.p_type == PT_NOTE && segment.p_offset <= size &&
		    segment.p_filesz <= size - segment.p_offset &&
		    notes_have_ours((const char *)head + segment.p_offset, (size_t)segment.p_filesz))
			return true;
	}
	return false;
}

void agent_script_done(AgentScript *script)
{
	free(script->interpreter);
	free(script->command);
	*script = (AgentScript){ 0 };
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The next word of the line, to be freed; *at moves behind it. NULL at the end, or without memory. */
static char *next_word(const char **at)
{
	const char *start = *at + strspn(*at, BLANKS);
	size_t n = strcspn(start, BLANKS);

	*at = start + n;
	return n == 0 ? NULL : strndup(start, n);
}

/* What env(1) would start: the first word that is neither an option nor a variable. */
static int parse_env(const char *line, AgentScript *script)
{
	for (;;) {
		_cleanup_free_ char *word = next_word(&line);
		const char *text = word;

		if (!text)
			return line[strspn(line, BLANKS)] ? -ENOMEM : -ENOEXEC;
		if (starts_with(text, "-S") && text[2])
			text += 2;
		else if (starts_with(text, "--split-string="))
			text = strchr(text, '=') + 1;
		else if (text[0] == '-' || strchr(text, '='))
			continue;
		script->command = strdup(text);
		return script->command ? 0 : -ENOMEM;
	}
}

int agent_script_parse(const char *head, size_t size, AgentScript *ret)
{
	_cleanup_(agent_script_done) AgentScript script = { 0 };
	_cleanup_free_ char *line = NULL;
	const char *at, *end;
	int r;

	if (size < 2 || head[0] != '#' || head[1] != '!')
		return 0;
	end = memchr(head, '\n', size);
	if ((end ? (size_t)(end - head) : size) > SCRIPT_LINE_MAX)
		return -ENOEXEC;
	line = strndup(head + 2, (end ? (size_t)(end - head) : size) - 2);
	if (!line)
		return -ENOMEM;
	line[strcspn(line, "\r")] = '\0';
	at = line;
	script.interpreter = next_word(&at);
	if (!script.interpreter)
		return line[strspn(line, BLANKS)] ? -ENOMEM : -ENOEXEC;
	if (streq(base_name(script.interpreter), "env")) {
		r = parse_env(at, &script);
		if (r < 0)
			return r;
		/* With a slash in it env(1) looks nothing up. */
		free(script.interpreter);
		script.interpreter = NULL;
		if (strchr(script.command, '/'))
			script.interpreter = TAKE_PTR(script.command);
	}
	*ret = script;
	script = (AgentScript){ 0 };
	return 1;
}

/* Is there, in this line, the path itself and not the start of a longer one? */
static bool line_names(const char *line, size_t n, const char *path)
{
	static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/";
	size_t length = strlen(path);

	for (size_t i = 0; i + length <= n; i++)
		if (memcmp(line + i, path, length) == 0 &&
		    (i + length == n || !memchr(more, line[i + length], sizeof(more) - 1)))
			return true;
	return false;
}

bool agent_script_starts_entry(const AgentScript *script, const char *head, size_t size)
{
	static const char *const ours[] = { CS_BIN_DIR "/claude", CS_BIN_DIR "/codex", CS_BIN_DIR "/pi",
					    CS_ENTRY_PATH, CS_LAUNCH_PATH };
	const char *shell = base_name(script->interpreter ? script->interpreter : script->command);
	size_t n_shell = strlen(shell);

	if (n_shell < 2 || !streq(shell + n_shell - 2, "sh"))
		return false;
	for (size_t at = 0; at < size;) {
		const char *line = head + at, *end = memchr(line, '\n', size - at);
		size_t n = end ? (size_t)(end - line) : size - at;

		at += n + 1;
		while (n > 0 && strchr(BLANKS, *line) && *line)
			line++, n--;
		if (n == 0 || *line == '#')
			continue;
		for (size_t i = 0; i < ELEMENTSOF(ours); i++)
			if (line_names(line, n, ours[i]))
				return true;
	}
	return false;
}

/* The first node_modules of the path: *ret_prefix bytes before it, the rest behind it. */
static const char *find_modules(const char *program, size_t *ret_prefix)
{
	const char *found = strstr(program, MODULES);

	if (!found)
		return NULL;
	*ret_prefix = (size_t)(found - program);
	return found + strlen(MODULES);
}

static bool ends_with_lib(const char *program, size_t prefix)
{
	return prefix >= 4 && strncmp(program + prefix - 4, "/lib", 4) == 0;
}

int agent_package(const char *program, char **ret)
{
	size_t prefix, n;
	const char *rest = find_modules(program, &prefix);
	char *package = NULL;

	if (rest) {
		n = strcspn(rest, "/");
		if (rest[0] == '@' && rest[n])
			n += 1 + strcspn(rest + n + 1, "/");
		/* A file right there is in no package of its own. */
		n = ends_with_lib(program, prefix) && rest[n] ? (size_t)(rest - program) + n
							      : (size_t)(rest - program) - 1;
		package = strndup(program, n);
		if (!package)
			return -ENOMEM;
	}
	*ret = package;
	return 0;
}

int agent_package_node(const char *program, char **ret)
{
	char *node = NULL;
	size_t prefix;

	if (find_modules(program, &prefix) && ends_with_lib(program, prefix) &&
	    asprintf(&node, "%.*s/bin/node", (int)(prefix - 4), program) < 0)
		return -ENOMEM;
	*ret = node;
	return 0;
}

int agent_starter(const char *node, const char *program, char **ret)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream;
	bool failed;

	/* A blank would end the kernel's word. */
	if (strlen("#!") + strlen(node) > SCRIPT_LINE_MAX || strpbrk(node, BLANKS "\r\n"))
		return -ENAMETOOLONG;
	stream = open_memstream(&text, &size);
	if (!stream)
		return -ENOMEM;
	/* As an address: in a path that import() is given, some characters have another meaning. */
	fprintf(stream, "#!%s\nimport(require(\"url\").pathToFileURL(\"", node);
	for (const char *p = program; *p; p++)
		if (*p == '"' || *p == '\\' || (unsigned char)*p < ' ')
			fprintf(stream, "\\x%02x", (unsigned char)*p);
		else
			fputc(*p, stream);
	fputs("\"));\n", stream);
	failed = ferror(stream);
	if (fclose(stream) != 0 || failed) {
		free(text);
		return -ENOMEM;
	}
	*ret = text;
	return 0;
}
