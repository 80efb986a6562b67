/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "service/session/git-file.h"
#include "tests/fuzz/fuzz.h"

static int each(void *userdata, const char *key, const char *value)
{
	assert(key[0] && key[strlen(key) - 1] != '.');
	assert(!value || strlen(value) <= 4096);
	(*(size_t *)userdata)++;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = 0;
	int r = git_file_parse((const char *)data, size, each, &n);

	assert(r == 0 || r == -EBADMSG);
	assert(n <= size);
	return 0;
}
