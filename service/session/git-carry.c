/* SPDX-License-Identifier: MIT */
#include "service/session/git-carry.h"

#include "service/link/pack.h"
#include "service/session/git-config.h"

typedef enum CarryKind {
	CARRY_VALUE,
	CARRY_ALIAS,  /* git's own commands, not a shell's */
	CARRY_URL,    /* without a password */
	CARRY_FORGED, /* the same of the part between the dots: what git puts in the place of an address */
	CARRY_SYSTEM, /* a path that agents see too */
	CARRY_PATH,   /* of a file whose content the session shows */
	CARRY_LFS,
	CARRY_LEFT, /* changes what a commit records, and has to stay outside: it is named */
	CARRY_NOT,  /* runs a program, or is a secret */
} CarryKind;

/* The first one that fits holds. "*": any; middle NULL: nothing stands between section and name. */
static const struct {
	const char *section, *middle, *name;
	CarryKind kind;
} rows[] = {
	/* what has to stay outside */
	{ "commit", NULL, "gpgsign", CARRY_LEFT },
	{ "tag", NULL, "gpgsign", CARRY_LEFT },
	{ "push", NULL, "gpgsign", CARRY_NOT },
	{ "core", NULL, "hookspath", CARRY_LEFT },
	{ "filter", "lfs", "*", CARRY_LFS },
	{ "filter", "*", "clean", CARRY_LEFT },
	{ "filter", "*", "process", CARRY_LEFT },
	{ "diff", NULL, "external", CARRY_NOT },
	{ "diff", NULL, "tool", CARRY_NOT },
	{ "diff", NULL, "guitool", CARRY_NOT },
	{ "diff", NULL, "orderfile", CARRY_NOT },
	/* files whose content is shown */
	{ "core", NULL, "excludesfile", CARRY_PATH },
	{ "core", NULL, "attributesfile", CARRY_PATH },
	/* what a commit records */
	{ "core", NULL, "abbrev", CARRY_VALUE },
	{ "core", NULL, "autocrlf", CARRY_VALUE },
	{ "core", NULL, "commentchar", CARRY_VALUE },
	{ "core", NULL, "eol", CARRY_VALUE },
	{ "core", NULL, "filemode", CARRY_VALUE },
	{ "core", NULL, "logallrefupdates", CARRY_VALUE },
	{ "core", NULL, "quotepath", CARRY_VALUE },
	{ "core", NULL, "safecrlf", CARRY_VALUE },
	{ "core", NULL, "symlinks", CARRY_VALUE },
	{ "core", NULL, "whitespace", CARRY_VALUE },
	{ "author", NULL, "*", CARRY_VALUE },
	{ "committer", NULL, "*", CARRY_VALUE },
	{ "user", NULL, "useconfigonly", CARRY_VALUE },
	{ "commit", NULL, "cleanup", CARRY_VALUE },
	{ "commit", NULL, "status", CARRY_VALUE },
	{ "commit", NULL, "verbose", CARRY_VALUE },
	{ "i18n", NULL, "*", CARRY_VALUE },
	{ "init", NULL, "defaultobjectformat", CARRY_VALUE },
	{ "init", NULL, "defaultrefformat", CARRY_VALUE },
	{ "apply", NULL, "*", CARRY_VALUE },
	{ "am", NULL, "*", CARRY_VALUE },
	/* how branches move */
	{ "branch", NULL, "*", CARRY_VALUE },
	{ "checkout", NULL, "*", CARRY_VALUE },
	{ "fetch", NULL, "*", CARRY_VALUE },
	{ "merge", NULL, "autostash", CARRY_VALUE },
	{ "merge", NULL, "branchdesc", CARRY_VALUE },
	{ "merge", NULL, "conflictstyle", CARRY_VALUE },
	{ "merge", NULL, "directoryrenames", CARRY_VALUE },
	{ "merge", NULL, "ff", CARRY_VALUE },
	{ "merge", NULL, "log", CARRY_VALUE },
	{ "merge", NULL, "renamelimit", CARRY_VALUE },
	{ "merge", NULL, "renames", CARRY_VALUE },
	{ "merge", NULL, "stat", CARRY_VALUE },
	{ "pull", NULL, "*", CARRY_VALUE },
	{ "push", NULL, "*", CARRY_VALUE },
	{ "rebase", NULL, "*", CARRY_VALUE },
	{ "rerere", NULL, "*", CARRY_VALUE },
	{ "stash", NULL, "*", CARRY_VALUE },
	{ "submodule", NULL, "recurse", CARRY_VALUE },
	/* what it shows */
	{ "advice", NULL, "*", CARRY_VALUE },
	{ "color", NULL, "*", CARRY_VALUE },
	{ "color", "*", "*", CARRY_VALUE },
	{ "column", NULL, "*", CARRY_VALUE },
	{ "diff", NULL, "*", CARRY_VALUE },
	{ "diff", "*", "binary", CARRY_VALUE },
	{ "diff", "*", "wordregex", CARRY_VALUE },
	{ "diff", "*", "xfuncname", CARRY_VALUE },
	{ "format", NULL, "pretty", CARRY_VALUE },
	{ "format", NULL, "signoff", CARRY_VALUE },
	{ "grep", NULL, "*", CARRY_VALUE },
	{ "log", NULL, "*", CARRY_VALUE },
	{ "pretty", NULL, "*", CARRY_VALUE },
	{ "status", NULL, "*", CARRY_VALUE },
	{ "tag", NULL, "sort", CARRY_VALUE },
	{ "versionsort", NULL, "*", CARRY_VALUE },
	{ "alias", NULL, "*", CARRY_ALIAS },
	/* the way to other repositories */
	{ "url", "*", "insteadof", CARRY_FORGED },
	{ "url", "*", "pushinsteadof", CARRY_FORGED },
	{ "http", NULL, "proxy", CARRY_URL },
	{ "http", NULL, "sslcainfo", CARRY_SYSTEM },
	{ "http", NULL, "version", CARRY_VALUE },
	{ "http", NULL, "postbuffer", CARRY_VALUE },
};

void git_carry_done(GitCarry *carry)
{
	strings_free(carry->settings);
	strings_free(carry->left);
	free(carry->excludes);
	free(carry->attributes);
	*carry = (GitCarry){ 0 };
}

static bool fits(const char *pattern, const char *text, size_t n)
{
	return streq(pattern, "*") || (strlen(pattern) == n && memcmp(pattern, text, n) == 0);
}

static CarryKind kind_of(const char *section, size_t n_section, const char *middle, size_t n_middle,
			 const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		if (fits(rows[i].section, section, n_section) && fits(rows[i].name, name, strlen(name)) &&
		    !rows[i].middle == !middle && (!middle || fits(rows[i].middle, middle, n_middle)))
			return rows[i].kind;
	return CARRY_NOT;
}

/* git_parse_maybe_bool(): what is neither yes nor no counts as yes here. */
static bool is_on(const char *value)
{
	static const char *const off[] = { "", "false", "no", "off", "0" };

	for (size_t i = 0; value && i < ELEMENTSOF(off); i++)
		if (strcasecmp(value, off[i]) == 0)
			return false;
	return true;
}

/* An address somewhere in it names who logs in: many forges take a token as the name alone. ssh's has no secret. */
static bool has_login(const char *text, size_t n)
{
	const char *end = text + n, *p;

	for (p = text; (p = memmem(p, (size_t)(end - p), "://", 3)); p += 3) {
		bool ssh = p - text >= 3 && memcmp(p - 3, "ssh", 3) == 0;

		for (const char *q = p + 3; q < end && !strchr("/ \t\n\"'", *q); q++)
			if (*q == '@' && (!ssh || memchr(p + 3, ':', (size_t)(q - p - 3))))
				return true;
	}
	return false;
}

/* A scheme that starts no program ("ext::", remote helpers), and no login. */
static bool is_plain_url(const char *url, size_t n)
{
	static const char *const schemes[] = { "https://", "http://",   "ssh://",    "git://",
					       "git@",     "socks5://", "socks5h://" };

	for (size_t i = 0; i < ELEMENTSOF(schemes); i++)
		if (n > strlen(schemes[i]) && memcmp(url, schemes[i], strlen(schemes[i])) == 0)
			return !has_login(url, n);
	return false;
}

static int add_setting(GitCarry *carry, const char *key, const char *value)
{
	int r = strings_append(&carry->settings, key);

	return r < 0 ? r : strings_append(&carry->settings, value ?: "true");
}

/* on: it holds, as far as read by now. */
static int name_left(GitCarry *carry, const char *key, bool on)
{
	size_t n = strings_count(carry->left);

	for (size_t i = 0; i < n; i++)
		if (streq(carry->left[i], key)) {
			if (on)
				return 0;
			free(carry->left[i]);
			memmove(&carry->left[i], &carry->left[i + 1], (n - i) * sizeof(*carry->left));
			return 0;
		}
	return on ? strings_append(&carry->left, key) : 0;
}

static int take_path(GitCarry *carry, const char *name, const char *value, const char *home)
{
	char **path = streq(name, "excludesfile") ? &carry->excludes : &carry->attributes, *copy;
	const char *rest = value ? starts_with(value, "~/") : NULL;

	if (!value || asprintf(&copy, "%s%s%s", rest ? home : "", rest ? "/" : "", rest ?: value) < 0)
		return value ? -ENOMEM : 0;
	free(*path);
	*path = copy;
	return 0;
}

int git_carry_add(GitCarry *carry, const char *key, const char *value, const char *home)
{
	const char *first = strchr(key, '.'), *last = strrchr(key, '.'), *middle;
	size_t n_middle;

	if (!first)
		return 0;
	middle = last > first ? first + 1 : NULL;
	n_middle = middle ? (size_t)(last - middle) : 0;
	switch (kind_of(key, (size_t)(first - key), middle, n_middle, last + 1)) {
	case CARRY_VALUE:
		return value && has_login(value, strlen(value)) ? 0 : add_setting(carry, key, value);
	case CARRY_ALIAS:
		return value && value[0] != '!' && !has_login(value, strlen(value))
			       ? add_setting(carry, key, value)
			       : 0;
	case CARRY_URL:
		return value && (!*value || is_plain_url(value, strlen(value)))
			       ? add_setting(carry, key, value)
			       : 0;
	case CARRY_FORGED:
		return value && is_plain_url(middle, n_middle) ? add_setting(carry, key, value) : 0;
	case CARRY_SYSTEM:
		return value && (starts_with(value, "/etc/") || starts_with(value, "/usr/"))
			       ? add_setting(carry, key, value)
			       : 0;
	case CARRY_PATH:
		return take_path(carry, last + 1, value, home);
	case CARRY_LFS:
		carry->lfs |=
			value && (strstr(value, "git-lfs clean") || strstr(value, "git-lfs filter-process"));
		return 0;
	case CARRY_LEFT:
		return name_left(carry, key, is_on(value));
	case CARRY_NOT:
		break;
	}
	return 0;
}

/* As git-config(1) writes a header: [section "middle"]. */
static int render_setting(FILE *out, const char *key, const char *value)
{
	const char *first = strchr(key, '.'), *last = strrchr(key, '.');
	_cleanup_free_ char *quoted = git_config_quote(value);

	if (!quoted)
		return -ENOMEM;
	(void)fprintf(out, "[%.*s", (int)(first - key), key);
	if (last > first) {
		(void)fputs(" \"", out);
		for (const char *p = first + 1; p < last; p++) {
			if (*p == '"' || *p == '\\')
				(void)fputc('\\', out);
			(void)fputc(*p, out);
		}
		(void)fputc('"', out);
	}
	(void)fprintf(out, "]\n\t%s = %s\n", last + 1, quoted);
	return 0;
}

int git_carry_render(const GitCarry *carry, const char *excludes, const char *attributes, bool lfs, FILE *out)
{
	/* As `git lfs install` writes it (git-lfs-install(1)). */
	static const char *const of_lfs[][2] = { { "filter.lfs.clean", "git-lfs clean -- %f" },
						 { "filter.lfs.smudge", "git-lfs smudge -- %f" },
						 { "filter.lfs.process", "git-lfs filter-process" },
						 { "filter.lfs.required", "true" } };
	int r = 0;

	for (size_t i = 0; r == 0 && carry->settings && carry->settings[i]; i += 2)
		r = render_setting(out, carry->settings[i], carry->settings[i + 1]);
	for (size_t i = 0; r == 0 && lfs && carry->lfs && i < ELEMENTSOF(of_lfs); i++)
		r = render_setting(out, of_lfs[i][0], of_lfs[i][1]);
	if (r == 0 && excludes)
		r = render_setting(out, "core.excludesfile", excludes);
	if (r == 0 && attributes)
		r = render_setting(out, "core.attributesfile", attributes);
	return r;
}
