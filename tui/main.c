/* SPDX-License-Identifier: MIT */
#include "dbus/names.h"
#include "dbus/print.h"
#include "tui/app.h"
#include "tui/dump.h"
#include "tui/options.h"
#include "tui/term.h"

static int complain(int status, const char *problem)
{
	print_complaint_of(stderr, "claude-sandbox-tui", problem);
	return status;
}

int main(int argc, char **argv)
{
	_cleanup_free_ char *problem = NULL;
	Options options = { 0 };
	AppOptions app = { 0 };
	PrintStyle style;
	int r;

	r = options_parse(argc, argv, &options, &problem);
	if (r < 0)
		return complain(r == -EINVAL ? CS_EXIT_USAGE : CS_EXIT_REFUSED, problem);
	if (options.help) {
		options_help(stdout);
		return print_result(stdout) < 0 ? CS_EXIT_REFUSED : 0;
	}
	if (options.version) {
		printf("claude-sandbox-tui %s\n", CS_VERSION);
		return print_result(stdout) < 0 ? CS_EXIT_REFUSED : 0;
	}
	/* tui/format asks the C library for widths, with a screen and without one. */
	style = print_style(stdout);
	style.utf8 = term_prepare();
	if (options.utc)
		print_utc();
	if (options.dump)
		return dump_run(&(DumpOptions){ .view = view_find(options.dump),
						.session = options.session,
						.host = options.host,
						.json = options.json,
						.out = stdout,
						.err = stderr,
						.style = style });
	app.utf8 = style.utf8;
	app.colour = style.colour;
	app.host = options.host;
	app.view = options.view;
	r = app_run(&app, &problem);
	return r < 0 ? complain(CS_EXIT_REFUSED, problem) : 0;
}
