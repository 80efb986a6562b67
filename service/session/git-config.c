/* SPDX-License-Identifier: MIT */
#include "service/session/git-config.h"

/* Commands of credential helpers run in a shell with the agent's PATH: absolute, so that no planted gh gets a
 * token. */
#define GITHUB_HELPER "!/usr/bin/gh auth git-credential"
#define GITLAB_HELPER "!/usr/bin/glab auth git-credential"
#define HOST_BYTES_MAX 253u /* RFC 1035, section 2.3.4, in text */

char *git_config_quote(const char *value)
{
	char *text = malloc(2 * strlen(value) + 3), *out = text;

	if (!text)
		return NULL;
	*out++ = '"';
	for (const char *p = value; *p; p++) {
		static const char specials[] = "\\\"\n\t\b", letters[] = "\\\"ntb";
		const char *special = strchr(specials, *p);

		if (special) {
			*out++ = '\\';
			*out++ = letters[special - specials];
		} else if ((unsigned char)*p >= ' ' && *p != 0x7f)
			*out++ = *p;
	}
	*out++ = '"';
	*out = 0;
	return text;
}

static bool is_host(const char *host)
{
	size_t n = strlen(host);

	if (n == 0 || n > HOST_BYTES_MAX || host[0] == '-' || host[0] == '.')
		return false;
	return strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == n;
}

static int render_identity(FILE *out, const char *key, const char *value)
{
	_cleanup_free_ char *quoted = NULL;

	if (!value || !*value)
		return 0;
	quoted = git_config_quote(value);
	if (!quoted)
		return -ENOMEM;
	(void)fprintf(out, "\t%s = %s\n", key, quoted);
	return 0;
}

static void render_forge(FILE *out, const char *host, const char *helper)
{
	(void)fprintf(out,
		      "[url \"https://%s/\"]\n"
		      "\tinsteadOf = \"git@%s:\"\n"
		      "\tinsteadOf = \"ssh://git@%s/\"\n",
		      host, host, host);
	/* The empty helper first: it takes back what /etc/gitconfig or the repository may have named. */
	if (helper)
		(void)fprintf(out,
			      "[credential \"https://%s\"]\n"
			      "\thelper = \"\"\n"
			      "\thelper = \"%s\"\n",
			      host, helper);
}

int git_config_render(const GitConfigOptions *options, char **ret)
{
	_cleanup_fclose_ FILE *out = NULL;
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	int r;

	out = open_memstream(&text, &size);
	if (!out)
		return -ENOMEM;
	(void)fprintf(out, "[user]\n");
	r = render_identity(out, "name", options->name);
	if (r == 0)
		r = render_identity(out, "email", options->email);
	if (r < 0)
		return r;
	(void)fprintf(out, "[init]\n\tdefaultBranch = \"main\"\n");
	render_forge(out, "github.com", options->forge ? GITHUB_HELPER : NULL);
	if (options->forge)
		(void)fprintf(
			out, "[credential \"https://gist.github.com\"]\n\thelper = \"\"\n\thelper = \"%s\"\n",
			GITHUB_HELPER);
	render_forge(out, "gitlab.com", options->forge ? GITLAB_HELPER : NULL);
	for (size_t i = 0; options->forge_hosts && options->forge_hosts[i]; i++)
		if (is_host(options->forge_hosts[i]))
			render_forge(out, options->forge_hosts[i], options->forge ? GITLAB_HELPER : NULL);
	if (fflush(out) != 0 || ferror(out))
		return -ENOMEM;
	fclosep(&out);
	*ret = TAKE_PTR(text);
	return 0;
}
