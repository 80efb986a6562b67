/* SPDX-License-Identifier: MIT */
#include "service/session/git-config.h"

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

static int render_value(FILE *out, const char *key, const char *value)
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

/*
 * The command runs in a shell with the agent's PATH: absolute, so that no planted gh gets a token. The empty
 * helper first takes back what a more general section may have named.
 */
static void render_helper(FILE *out, const char *host, const char *helper)
{
	if (helper)
		(void)fprintf(out,
			      "[credential \"https://%s\"]\n"
			      "\thelper = \"\"\n"
			      "\thelper = \"!%s auth git-credential\"\n",
			      host, helper);
}

static void render_forge(FILE *out, const char *host, const char *helper)
{
	(void)fprintf(out,
		      "[url \"https://%s/\"]\n"
		      "\tinsteadOf = \"git@%s:\"\n"
		      "\tinsteadOf = \"ssh://git@%s/\"\n",
		      host, host, host);
	render_helper(out, host, helper);
}

static int render_values(FILE *out, const GitConfigOptions *options)
{
	int r;

	(void)fprintf(out, "[user]\n");
	r = render_value(out, "name", options->name);
	if (r == 0)
		r = render_value(out, "email", options->email);
	if (r < 0)
		return r;
	(void)fprintf(out, "[init]\n");
	r = render_value(out, "defaultBranch",
			 options->default_branch && *options->default_branch ? options->default_branch
									     : "main");
	if (r < 0)
		return r;
	(void)fprintf(out, "[gc]\n\tworktreePruneExpire = never\n");
	if (!options->top_level)
		return 0;
	(void)fprintf(out, "[safe]\n");
	return render_value(out, "directory", options->top_level);
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
	r = options->carry ? git_carry_render(options->carry, options->excludes, options->attributes,
					      options->lfs, out)
			   : 0;
	if (r == 0)
		r = render_values(out, options);
	if (r < 0)
		return r;
	render_forge(out, "github.com", options->gh);
	render_helper(out, "gist.github.com", options->gh);
	render_forge(out, "gitlab.com", options->glab);
	for (size_t i = 0; options->forge_hosts && options->forge_hosts[i]; i++)
		if (is_host(options->forge_hosts[i]))
			render_forge(out, options->forge_hosts[i], options->glab);
	if (fflush(out) != 0 || ferror(out))
		return -ENOMEM;
	fclosep(&out);
	*ret = TAKE_PTR(text);
	return 0;
}
