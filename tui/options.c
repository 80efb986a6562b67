/* SPDX-License-Identifier: MIT */
#include "tui/options.h"

#include "dbus/client-remote.h"
#include "tui/view.h"

static int refuse_view(const char *name, char **ret_problem)
{
	_cleanup_free_ char *names = strdup("");
	const View *view;

	for (size_t i = 0; names && (view = view_at(i)); i++) {
		char *longer = NULL;

		if (asprintf(&longer, "%s%s%s", names, i > 0 ? ", " : "", view->name) < 0)
			return -ENOMEM;
		free(names);
		names = longer;
	}
	return names ? refuse(ret_problem, -EINVAL, "there is no view '%s'; there are: %s", name, names)
		     : -ENOMEM;
}

typedef struct Word {
	const char *brief, *full;
} Word;

/* Does argument begin an option with a value? Return: 1 with *ret_value, taken from the next argument if need
 * be. */
static int take_value(int argc, char *const *argv, int *i, const Word *word, const char **ret,
		      char **ret_problem)
{
	const char *argument = argv[*i], *rest = starts_with(argument, word->full);

	if (rest && *rest == '=') {
		*ret = rest + 1;
		return 1;
	}
	if (word->brief && (rest = starts_with(argument, word->brief)) && *rest) {
		*ret = rest;
		return 1;
	}
	if (!streq(argument, word->full) && !(word->brief && streq(argument, word->brief)))
		return 0;
	if (*i + 1 >= argc)
		return refuse(ret_problem, -EINVAL, "'%s' needs a value; see claude-sandbox-tui --help",
			      argument);
	*ret = argv[++*i];
	return 1;
}

static bool take_flag(const char *argument, Options *options)
{
	if (streq(argument, "--json"))
		options->json = true;
	else if (streq(argument, "--utc"))
		options->utc = true;
	else if (streq(argument, "-h") || streq(argument, "--help"))
		options->help = true;
	else if (streq(argument, "--version"))
		options->version = true;
	else
		return false;
	return true;
}

int options_parse(int argc, char *const *argv, Options *ret, char **ret_problem)
{
	Options options = { 0 };
	const struct {
		Word word;
		const char **value;
	} words[] = {
		{ { "-H", "--host" }, &options.host },
		{ { NULL, "--dump" }, &options.dump },
		{ { NULL, "--view" }, &options.view },
		{ { NULL, "--session" }, &options.session },
	};

	for (int i = 1; i < argc; i++) {
		int r = take_flag(argv[i], &options);

		for (size_t k = 0; r == 0 && k < ELEMENTSOF(words); k++)
			r = take_value(argc, argv, &i, &words[k].word, words[k].value, ret_problem);
		if (r < 0)
			return r;
		/* --dump VIEW SESSION */
		if (r == 0 && argv[i][0] != '-' && options.dump && !options.session) {
			options.session = argv[i];
			r = 1;
		}
		if (r == 0)
			return refuse(ret_problem, -EINVAL,
				      "'%s' is not understood; see claude-sandbox-tui --help", argv[i]);
	}
	if (options.dump && !view_find(options.dump))
		return refuse_view(options.dump, ret_problem);
	if (options.view && !view_find(options.view))
		return refuse_view(options.view, ret_problem);
	if (options.json && !options.dump)
		return refuse(ret_problem, -EINVAL, "--json goes with --dump VIEW");
	if (options.session && !options.dump)
		return refuse(ret_problem, -EINVAL, "--session ID goes with --dump VIEW");
	if (options.session && !client_id_is_prefix(options.session))
		return refuse(ret_problem, -EINVAL,
			      "'%s' is no session's id or its beginning; '--dump sessions' lists them",
			      options.session);
	if (options.host && !client_remote_is_valid(options.host))
		return refuse(ret_problem, -EINVAL,
			      "'%s' is not [USER@]HOST[:PORT]; see claude-sandbox-tui --help", options.host);
	*ret = options;
	return 0;
}

void options_help(FILE *out)
{
	const View *view;

	fprintf(out, "usage: claude-sandbox-tui [-H [USER@]HOST[:PORT]] [--view VIEW]\n"
		     "       claude-sandbox-tui [-H [USER@]HOST[:PORT]] --dump VIEW [ID] [--json]\n"
		     "\n"
		     "Shows the sessions of coding agents, what each may touch and reach, and what it was "
		     "refused; edits "
		     "allow-ip.\nPress ? in it for its keys, q to leave it.\n"
		     "\n"
		     "  --view VIEW     begin with this view\n"
		     "  --dump VIEW     print a view and exit; with --json as JSON\n"
		     "  ID              of this session (or the beginning of its id); else of the newest\n"
		     "  -H, --host      look at another machine, by ssh\n"
		     "  --utc           show times in UTC, not in the time zone of this terminal\n"
		     "  -h, --help      this help\n"
		     "  --version       show the version\n"
		     "\n"
		     "views:\n");
	for (size_t i = 0; (view = view_at(i)); i++)
		fprintf(out, "  %-9s  %s\n", view->name, view->about);
}
