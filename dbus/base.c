/* SPDX-License-Identifier: MIT */
#include "dbus/base.h"

#include <stdarg.h>

int refuse(char **ret, int error, const char *format, ...)
{
	char *sentence = NULL;
	va_list arguments;
	int n;

	if (!ret)
		return error;

	va_start(arguments, format);
	n = vasprintf(&sentence, format, arguments);
	va_end(arguments);
	if (n < 0)
		return -ENOMEM;

	free(*ret);
	*ret = sentence;
	return error;
}
