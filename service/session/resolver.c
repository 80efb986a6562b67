/* SPDX-License-Identifier: MIT */
#include "service/session/resolver.h"

#include <arpa/inet.h>
#include <fcntl.h>

#define RESOLVER_PATH "/etc/resolv.conf"

void resolver_done(Resolver *resolver)
{
	free(resolver->text);
	free(resolver->servers);
	*resolver = (Resolver){ 0 };
}

/* Return: the length of the keyword at the start of line when white space or the end follows it, else 0. */
static size_t keyword_length(const char *line, size_t n, const char *keyword)
{
	size_t length = strlen(keyword);

	if (n < length || memcmp(line, keyword, length) != 0)
		return 0;
	return n == length || line[length] == ' ' || line[length] == '\t' ? length : 0;
}

static bool is_ipv4(const char *text, size_t n)
{
	char address[INET_ADDRSTRLEN];
	struct in_addr in;

	while (n > 0 && (*text == ' ' || *text == '\t')) {
		text++;
		n--;
	}
	for (size_t i = 0; i < n; i++)
		if (text[i] == ' ' || text[i] == '\t')
			n = i;
	if (n == 0 || n >= sizeof(address))
		return false;
	memcpy(address, text, n);
	address[n] = 0;
	return inet_pton(AF_INET, address, &in) == 1;
}

static void render_line(FILE *out, FILE *servers, const char *line, size_t n, bool keep_servers,
			Resolver *resolver)
{
	size_t length = keyword_length(line, n, "nameserver");

	if (length > 0) {
		resolver->n_servers++;
		(void)fprintf(servers, "%.*s\n", (int)(n - length), line + length);
		if (is_ipv4(line + length, n - length))
			resolver->n_ipv4++;
		if (!keep_servers)
			return;
	} else if (!keyword_length(line, n, "search") && !keyword_length(line, n, "domain") &&
		   !keyword_length(line, n, "options"))
		return;
	(void)fprintf(out, "%.*s\n", (int)n, line);
}

/* The file: the one name server before what was taken over. */
static char *with_forwarder(uint32_t forwarder, const char *rest)
{
	struct in_addr in = { .s_addr = htonl(forwarder) };
	char address[INET_ADDRSTRLEN], *text;

	(void)inet_ntop(AF_INET, &in, address, sizeof(address));
	return asprintf(&text, "nameserver %s\n%s", address, rest) < 0 ? NULL : text;
}

int resolver_render(const char *text, size_t size, uint32_t forwarder, bool keep_servers, Resolver *ret)
{
	_cleanup_(resolver_done) Resolver resolver = { 0 };
	_cleanup_fclose_ FILE *out = NULL, *servers = NULL;
	size_t written = 0, listed = 0;

	out = open_memstream(&resolver.text, &written);
	servers = open_memstream(&resolver.servers, &listed);
	if (!out || !servers)
		return -ENOMEM;
	for (const char *line = text, *end = text + size; line < end;) {
		const char *stop = memchr(line, '\n', (size_t)(end - line)) ?: end;
		const char *last = stop;

		while (last > line && (last[-1] == '\r' || last[-1] == ' ' || last[-1] == '\t'))
			last--;
		if (!memchr(line, 0, (size_t)(last - line)))
			render_line(out, servers, line, (size_t)(last - line), keep_servers && forwarder == 0,
				    &resolver);
		line = stop + 1;
	}
	if (fflush(out) != 0 || ferror(out) || fflush(servers) != 0 || ferror(servers))
		return -ENOMEM;
	fclosep(&out);
	fclosep(&servers);
	/* Where it has nobody to forward to, a name would be waited for in vain; without a server it is not.
	 */
	if (forwarder != 0 && resolver.n_ipv4 > 0) {
		_cleanup_free_ char *rest = TAKE_PTR(resolver.text);

		resolver.text = with_forwarder(forwarder, rest);
		if (!resolver.text)
			return -ENOMEM;
	}
	*ret = resolver;
	resolver = (Resolver){ 0 };
	return 0;
}

uint32_t resolver_first_ipv4(const Resolver *resolver)
{
	_cleanup_free_ char *servers = strdup(resolver->servers ?: "");
	char *rest = servers;
	struct in_addr in;

	for (char *line; servers && (line = strsep(&rest, "\n"));) {
		line += strspn(line, " \t");
		line[strcspn(line, " \t")] = '\0';
		if (inet_pton(AF_INET, line, &in) == 1)
			return ntohl(in.s_addr);
	}
	return 0;
}

int resolver_read(char **ret, size_t *ret_size)
{
	_cleanup_close_ int fd = open(RESOLVER_PATH, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	_cleanup_free_ char *text = malloc(RESOLVER_BYTES_MAX + 1);
	size_t size = 0;

	if (!text)
		return -ENOMEM;
	if (fd < 0 && errno != ENOENT)
		return -errno;
	while (fd >= 0 && size <= RESOLVER_BYTES_MAX) {
		ssize_t n = read(fd, text + size, RESOLVER_BYTES_MAX + 1 - size);

		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size += (size_t)n;
	}
	if (size > RESOLVER_BYTES_MAX)
		return -E2BIG;
	*ret = TAKE_PTR(text);
	*ret_size = size;
	return 0;
}
