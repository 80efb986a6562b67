/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/plan/request.h"

#define FILE_NAME "/etc/claude-sandbox.conf"

static char *copied(const char *text)
{
	char *copy = strdup(text);

	assert_non_null(copy);
	return copy;
}

static SessionRequest sample(void)
{
	static const char text[] = "allow-ip = 10.0.0.1 # here\nallow-write = /caf\xe9\n";
	SessionRequest request = {
		.id = copied("abcdefgh234567zz"),
		.agent = copied("claude"),
		.uid = 4294967294u,
		.gid = 100,
		.user = copied("someone"),
		.home = copied("/home/some\xff one"),
		.login_shell = copied("/bin/bash"),
		.cwd = copied("/srv/\xc3\x28/line\nbreak"),
		.descriptors = 7,
		.terminals = 5,
		.file_mode_mask = 0077,
		.ignored_signals = 1ULL << 63 | 4,
		.started_usec = UINT64_MAX,
	};

	assert_int_equal(strings_append(&request.argv, "--flag"), 0);
	assert_int_equal(strings_append(&request.argv, ""), 0);
	assert_int_equal(strings_append(&request.argv, "\xff\xfe\x01\n\x7f"), 0);
	assert_int_equal(strings_append(&request.environment, "A=\xff"), 0);
	assert_int_equal(strings_append(&request.environment, "no equals"), 0);
	assert_int_equal(config_parse(FILE_NAME, text, strlen(text), &request.config, NULL), 0);
	return request;
}

static void assert_strings_equal(char *const *a, char *const *b)
{
	assert_int_equal(strings_count(a), strings_count(b));
	for (size_t i = 0; a && a[i]; i++)
		assert_string_equal(a[i], b[i]);
}

static void assert_same(const SessionRequest *a, const SessionRequest *b)
{
	assert_int_equal(a->purpose, b->purpose);
	assert_int_equal(a->probes, b->probes);
	assert_string_equal(a->id, b->id);
	assert_string_equal(a->agent, b->agent);
	assert_int_equal(a->uid, b->uid);
	assert_int_equal(a->gid, b->gid);
	assert_string_equal(a->user, b->user);
	assert_string_equal(a->home, b->home);
	assert_string_equal(a->login_shell ?: "", b->login_shell);
	assert_strings_equal(a->argv, b->argv);
	assert_strings_equal(a->environment, b->environment);
	assert_string_equal(a->cwd, b->cwd);
	assert_int_equal(a->descriptors, b->descriptors);
	assert_int_equal(a->terminals, b->terminals);
	assert_int_equal(a->file_mode_mask, b->file_mode_mask);
	assert_true(a->ignored_signals == b->ignored_signals);
	assert_int_equal(a->started_usec, b->started_usec);
	assert_int_equal(a->config.n_values, b->config.n_values);
	for (size_t i = 0; i < a->config.n_values; i++) {
		assert_int_equal(a->config.values[i].key, b->config.values[i].key);
		assert_string_equal(a->config.values[i].text, b->config.values[i].text);
		assert_string_equal(a->config.values[i].comment, b->config.values[i].comment);
		assert_string_equal(a->config.values[i].origin, b->config.values[i].origin);
	}
}

static void check_round_trip(const SessionRequest *request)
{
	_cleanup_(session_request_done) SessionRequest again = { 0 };
	_cleanup_free_ uint8_t *data = NULL;
	size_t size = 0;

	assert_int_equal(session_request_encode(request, &data, &size), 0);
	assert_int_equal(session_request_decode(data, size, &again), 0);
	assert_same(request, &again);
}

static void test_round_trip(void **state)
{
	_cleanup_(session_request_done) SessionRequest request = sample();

	check_round_trip(&request);

	/* Nothing but what must be there. */
	request.argv = strings_free(request.argv);
	request.environment = strings_free(request.environment);
	free(TAKE_PTR(request.login_shell));
	config_done(&request.config);
	request.descriptors = request.terminals = 0;
	check_round_trip(&request);
}

/* Nothing of a caller's but the environment goes into a session that checks. */
static void test_purposes(void **state)
{
	_cleanup_(session_request_done) SessionRequest request = sample();
	char **argv = request.argv;
	uint8_t *data = NULL;
	size_t size = 0;

	request.probes = true;
	assert_int_equal(session_request_encode(&request, &data, &size), -EINVAL);
	for (request.purpose = PURPOSE_VERIFY; request.purpose < PURPOSE_MAX; request.purpose++) {
		request.probes = request.purpose == PURPOSE_VERIFY;
		request.descriptors = request.terminals = 0;
		request.argv = argv;
		assert_int_equal(session_request_encode(&request, &data, &size), -EINVAL);
		request.argv = NULL;
		check_round_trip(&request);
		request.background = true;
		assert_int_equal(session_request_encode(&request, &data, &size), -EINVAL);
		request.background = false;
		request.descriptors = 1;
		assert_int_equal(session_request_encode(&request, &data, &size), -EINVAL);
	}
	request.descriptors = 0;
	assert_int_equal(session_request_encode(&request, &data, &size), -EINVAL);
	request.argv = argv;
}

static void test_cut_and_changed(void **state)
{
	_cleanup_(session_request_done) SessionRequest request = sample(), again = { 0 };
	_cleanup_free_ uint8_t *data = NULL, *longer = NULL;
	size_t size = 0;

	assert_int_equal(session_request_encode(&request, &data, &size), 0);
	for (size_t n = 0; n < size; n++) {
		_cleanup_free_ uint8_t *part = malloc(n ?: 1);

		memcpy(part, data, n);
		assert_int_equal(session_request_decode(part, n, &again), -EBADMSG);
		assert_null(again.id);
	}

	longer = calloc(1, size + 1);
	memcpy(longer, data, size);
	assert_int_equal(session_request_decode(longer, size + 1, &again), -EBADMSG);

	/* Another layout's mark. */
	data[0] ^= 1;
	assert_int_equal(session_request_decode(data, size, &again), -EBADMSG);
}

/* Each way to break the law, refused by the encoder. */
static void test_invalid(void **state)
{
	static char *const ids[] = {
		(char *)"",
		(char *)"abcdefgh234567z",
		(char *)"abcdefgh234567zzz",
		(char *)"ABCDEFGH234567ZZ",
		(char *)"abcdefgh2345678z",
		(char *)"abcdefgh/../../z",
	};
	_cleanup_(session_request_done) SessionRequest request = sample();
	uint8_t *data = NULL;
	size_t size = 0;
	char *kept;

#define REFUSED_WITH(field, value)                                                         \
	do {                                                                               \
		__typeof__(request.field) _kept = request.field;                           \
		request.field = (value);                                                   \
		assert_int_equal(session_request_encode(&request, &data, &size), -EINVAL); \
		request.field = _kept;                                                     \
	} while (0)

	for (size_t i = 0; i < ELEMENTSOF(ids); i++)
		REFUSED_WITH(id, ids[i]);
	REFUSED_WITH(id, NULL);
	REFUSED_WITH(agent, NULL);
	REFUSED_WITH(agent, (char *)"");
	REFUSED_WITH(user, (char *)"");
	REFUSED_WITH(home, NULL);
	REFUSED_WITH(home, (char *)"relative");
	REFUSED_WITH(cwd, NULL);
	REFUSED_WITH(cwd, (char *)"");
	REFUSED_WITH(cwd, (char *)"./x");
	REFUSED_WITH(descriptors, 8);
	REFUSED_WITH(terminals, 15);
	REFUSED_WITH(file_mode_mask, 01000);

	kept = request.cwd;
	request.cwd = malloc(CS_PATH_BYTES_MAX + 1);
	memset(request.cwd, '/', CS_PATH_BYTES_MAX);
	request.cwd[CS_PATH_BYTES_MAX] = '\0';
	assert_int_equal(session_request_encode(&request, &data, &size), -EINVAL);
	request.cwd[CS_PATH_BYTES_MAX - 1] = '\0';
	check_round_trip(&request);
	free(request.cwd);
	request.cwd = kept;
	assert_null(data);
}

/* A decoder's peer is root's own service, but what it wrote is held against the same law. */
static void test_invalid_decoded(void **state)
{
	_cleanup_(session_request_done) SessionRequest request = sample(), again = { 0 };
	_cleanup_free_ uint8_t *data = NULL;
	size_t size = 0;
	uint8_t *id, *cwd;

	assert_int_equal(session_request_encode(&request, &data, &size), 0);
	id = memmem(data, size, "abcdefgh234567zz", CS_ID_LENGTH);
	cwd = memmem(data, size, "/srv/", 5);
	assert_non_null(id);
	assert_non_null(cwd);

	id[3] = '.';
	assert_int_equal(session_request_decode(data, size, &again), -EBADMSG);
	id[3] = 'd';
	cwd[0] = 's';
	assert_int_equal(session_request_decode(data, size, &again), -EBADMSG);
	cwd[0] = '/';
	cwd[2] = '\0';
	assert_int_equal(session_request_decode(data, size, &again), -EBADMSG);
	cwd[2] = 'r';
	assert_int_equal(session_request_decode(data, size, &again), 0);
}

static char *filled(size_t n)
{
	char *text = malloc(n + 1);

	assert_non_null(text);
	memset(text, 'x', n);
	text[n] = '\0';
	return text;
}

static void test_bounds(void **state)
{
	_cleanup_(session_request_done) SessionRequest request = sample();
	_cleanup_free_ char *half = filled(CS_REQUEST_BYTES_MAX / 2 - 1);
	char *argv[] = { half, NULL }, *environment[] = { half, NULL },
	     *one_more[] = { half, (char *)"", NULL };
	char **kept_argv = request.argv, **kept_environment = request.environment;
	char **many = calloc(CS_REQUEST_STRINGS_MAX + 2, sizeof(char *));
	uint8_t *data = NULL;
	size_t size = 0;

	/* Both vectors together, each string with its NUL: the bound and one byte more. */
	request.argv = argv;
	request.environment = environment;
	check_round_trip(&request);
	request.environment = one_more;
	assert_int_equal(session_request_encode(&request, &data, &size), -EINVAL);

	assert_non_null(many);
	for (size_t i = 0; i < CS_REQUEST_STRINGS_MAX; i++)
		many[i] = (char *)"";
	request.argv = many;
	request.environment = NULL;
	check_round_trip(&request);
	many[CS_REQUEST_STRINGS_MAX] = (char *)"";
	assert_int_equal(session_request_encode(&request, &data, &size), -EINVAL);

	assert_null(data);
	free(many);
	request.argv = kept_argv;
	request.environment = kept_environment;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_cut_and_changed),
		cmocka_unit_test(test_invalid),    cmocka_unit_test(test_invalid_decoded),
		cmocka_unit_test(test_bounds),     cmocka_unit_test(test_purposes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
