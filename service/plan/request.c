/* SPDX-License-Identifier: MIT */
#include "service/plan/request.h"

/* The two programs may be of different versions while an upgrade is on its way: another layout is refused. */
#define REQUEST_MAGIC 0x37525343u /* "CSR7" in the file */

/*
 * Arguments and environment, once more what twins of the environment put into the configuration, the
 * configuration's own file, and counts, names and origins.
 */
#define REQUEST_ENCODED_MAX (3u * CS_REQUEST_BYTES_MAX)

#define AGENT_BYTES_MAX 64u
#define USER_BYTES_MAX 255u
#define WARNINGS_MAX 16u
#define WARNING_BYTES_MAX 8192u

void session_request_done(SessionRequest *request)
{
	free(request->id);
	free(request->agent);
	free(request->user);
	free(request->home);
	free(request->login_shell);
	strings_free(request->argv);
	strings_free(request->environment);
	free(request->cwd);
	strings_free(request->warnings);
	config_done(&request->config);
	*request = (SessionRequest){ 0 };
}

static bool id_is_valid(const char *id)
{
	return strlen(id) == CS_ID_LENGTH && strspn(id, "abcdefghijklmnopqrstuvwxyz234567") == CS_ID_LENGTH;
}

static bool text_is_valid(const char *text, size_t max)
{
	return text[0] && strlen(text) <= max;
}

static bool path_is_valid(const char *path)
{
	return path[0] == '/' && strlen(path) < CS_PATH_BYTES_MAX;
}

/* Bytes of both vectors as execve(2) counts them, and their number. */
static bool vectors_are_valid(const SessionRequest *request)
{
	char *const *const vectors[] = { request->argv, request->environment };
	size_t bytes = 0, n = 0;

	for (size_t v = 0; v < ELEMENTSOF(vectors); v++)
		for (size_t i = 0; vectors[v] && vectors[v][i]; i++) {
			bytes += strlen(vectors[v][i]) + 1;
			n++;
		}
	return bytes <= CS_REQUEST_BYTES_MAX && n <= CS_REQUEST_STRINGS_MAX;
}

/* Nobody's descriptors go into a session that checks, and it has no arguments. */
static bool purpose_is_valid(const SessionRequest *request)
{
	if ((unsigned)request->purpose >= PURPOSE_MAX ||
	    (request->probes && request->purpose != PURPOSE_VERIFY))
		return false;
	return request->purpose == PURPOSE_AGENT ||
	       (request->descriptors == 0 && request->terminals == 0 && !request->background &&
		(!request->argv || !request->argv[0]));
}

/* One law for both directions: the encoder never makes what the decoder refuses. */
static bool request_is_valid(const SessionRequest *request)
{
	return request->id && id_is_valid(request->id) && request->agent &&
	       text_is_valid(request->agent, AGENT_BYTES_MAX) && request->user &&
	       text_is_valid(request->user, USER_BYTES_MAX) && request->home &&
	       path_is_valid(request->home) && strlen(request->login_shell ?: "") < CS_PATH_BYTES_MAX &&
	       request->cwd && path_is_valid(request->cwd) && vectors_are_valid(request) &&
	       slots_are_valid(request->descriptors, request->further) &&
	       (request->terminals & ~SLOTS_STANDARD) == 0 &&
	       (request->file_mode_mask & ~(mode_t)0777) == 0 && purpose_is_valid(request);
}

int session_request_encode(const SessionRequest *request, uint8_t **ret_data, size_t *ret_size)
{
	_cleanup_(pack_done) PackWriter w = { 0 };

	if (!request_is_valid(request))
		return -EINVAL;

	pack_init(&w, REQUEST_ENCODED_MAX);
	pack_u32(&w, REQUEST_MAGIC);
	pack_u32(&w, (uint32_t)request->purpose);
	pack_u8(&w, request->probes);
	pack_string(&w, request->id);
	pack_string(&w, request->agent);
	pack_u32(&w, request->uid);
	pack_u32(&w, request->gid);
	pack_string(&w, request->user);
	pack_string(&w, request->home);
	pack_string(&w, request->login_shell);
	pack_strings(&w, request->argv);
	pack_strings(&w, request->environment);
	pack_string(&w, request->cwd);
	pack_u32(&w, request->descriptors);
	pack_u32(&w, request->terminals);
	pack_bytes(&w, request->further, sizeof(request->further));
	pack_u8(&w, request->background);
	pack_u32(&w, request->file_mode_mask);
	pack_u64(&w, request->ignored_signals);
	inherited_pack(&request->inherited, &w);
	pack_u64(&w, request->started_usec);
	pack_strings(&w, request->warnings);
	config_pack(&request->config, &w);
	if (w.error)
		return w.error;

	*ret_data = TAKE_PTR(w.data);
	*ret_size = w.size;
	return 0;
}

int session_request_decode(const void *data, size_t size, SessionRequest *ret)
{
	_cleanup_(session_request_done) SessionRequest request = { 0 };
	uint8_t background, probes;
	const void *further;
	size_t n_further;
	PackReader r;
	int error;

	if (size > REQUEST_ENCODED_MAX)
		return -EBADMSG;

	unpack_init(&r, data, size);
	if (unpack_u32(&r) != REQUEST_MAGIC)
		return -EBADMSG;
	request.purpose = (SessionPurpose)unpack_enum(&r, PURPOSE_MAX);
	probes = unpack_u8(&r);
	request.probes = probes == 1;
	request.id = unpack_string(&r, CS_ID_LENGTH);
	request.agent = unpack_string(&r, AGENT_BYTES_MAX);
	request.uid = unpack_u32(&r);
	request.gid = unpack_u32(&r);
	request.user = unpack_string(&r, USER_BYTES_MAX);
	request.home = unpack_string(&r, CS_PATH_BYTES_MAX);
	request.login_shell = unpack_string(&r, CS_PATH_BYTES_MAX);
	request.argv = unpack_strings(&r, CS_REQUEST_STRINGS_MAX, CS_REQUEST_BYTES_MAX);
	request.environment = unpack_strings(&r, CS_REQUEST_STRINGS_MAX, CS_REQUEST_BYTES_MAX);
	request.cwd = unpack_string(&r, CS_PATH_BYTES_MAX);
	request.descriptors = unpack_u32(&r);
	request.terminals = unpack_u32(&r);
	further = unpack_bytes(&r, sizeof(request.further), &n_further);
	if (n_further > 0)
		memcpy(request.further, further, n_further);
	background = unpack_u8(&r);
	request.background = background == 1;
	request.file_mode_mask = unpack_u32(&r);
	request.ignored_signals = unpack_u64(&r);
	inherited_unpack(&r, &request.inherited);
	request.started_usec = unpack_u64(&r);
	request.warnings = unpack_strings(&r, WARNINGS_MAX, WARNING_BYTES_MAX);
	error = config_unpack(&r, &request.config);
	if (error < 0)
		return error;
	error = unpack_finish(&r);
	if (error < 0)
		return error;
	if (background > 1 || probes > 1 || !request_is_valid(&request))
		return -EBADMSG;

	*ret = request;
	request = (SessionRequest){ 0 };
	return 0;
}
