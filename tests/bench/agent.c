/* SPDX-License-Identifier: MIT */

/*
 * What ./bench puts in an agent's place: a static program that costs next to nothing.
 *
 *     agent                  ends at once
 *     agent lines BYTES      writes so many bytes in lines of 80 characters
 *     agent echo             a raw terminal whose every byte comes back; "q" ends it
 *     agent idle             says that it is there, then waits until standard input ends
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define LINE_BYTES 80u
#define CHUNK_LINES 800u

static const char ready[] = "ready\n";

static int write_all(const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = write(STDOUT_FILENO, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return 1;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

static int lines(unsigned long long bytes)
{
	static char chunk[CHUNK_LINES * LINE_BYTES];

	for (size_t i = 0; i < sizeof(chunk); i++)
		chunk[i] = i % LINE_BYTES == LINE_BYTES - 1 ? '\n' : (char)('!' + i % LINE_BYTES);
	while (bytes > 0) {
		size_t n = bytes < sizeof(chunk) ? (size_t)bytes : sizeof(chunk);

		if (write_all(chunk, n) != 0)
			return 1;
		bytes -= n;
	}
	return 0;
}

static int echo(void)
{
	struct termios modes;
	char buffer[256];
	ssize_t n;

	if (tcgetattr(STDIN_FILENO, &modes) < 0)
		return 1;
	cfmakeraw(&modes);
	if (tcsetattr(STDIN_FILENO, TCSANOW, &modes) < 0 || write_all(ready, strlen(ready)) != 0)
		return 1;
	while ((n = read(STDIN_FILENO, buffer, sizeof(buffer))) > 0) {
		if (memchr(buffer, 'q', (size_t)n))
			return 0;
		if (write_all(buffer, (size_t)n) != 0)
			return 1;
	}
	return 1;
}

static int idle(void)
{
	char buffer[256];

	if (write_all(ready, strlen(ready)) != 0)
		return 1;
	while (read(STDIN_FILENO, buffer, sizeof(buffer)) > 0)
		continue;
	return 0;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (strcmp(verb, "lines") == 0 && argc == 3)
		return lines(strtoull(argv[2], NULL, 10));
	if (strcmp(verb, "echo") == 0)
		return echo();
	if (strcmp(verb, "idle") == 0)
		return idle();
	return argc > 1 ? 2 : 0;
}
