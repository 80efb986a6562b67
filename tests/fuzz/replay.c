/* SPDX-License-Identifier: MIT */

/*
 * Replays a corpus through a fuzz target without libFuzzer: replay COUNT DIRECTORY runs every file of
 * DIRECTORY as it is, then COUNT mutations of each (bytes flipped, cut, repeated), from a fixed seed, so that
 * every run is the same.
 */

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "dbus/base.h"
#include "tests/fuzz/fuzz.h"

#define INPUT_MAX (256u * 1024)
#define MUTATIONS_MAX 16u

static uint64_t random_next(uint64_t *seed)
{
	/* xorshift64 (Marsaglia, "Xorshift RNGs", 2003) */
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static size_t mutate(uint8_t *data, size_t size, uint64_t *seed)
{
	static const uint8_t interesting[] = { 0, 1, 0x7f, 0x80, 0xff, '\n', '#', '=' };
	uint64_t n = 1 + random_next(seed) % MUTATIONS_MAX;

	for (uint64_t i = 0; i < n && size > 0; i++) {
		size_t at = random_next(seed) % size;

		switch (random_next(seed) % 5) {
		case 0:
			data[at] ^= (uint8_t)(1u << (random_next(seed) % 8));
			break;
		case 1:
			data[at] = interesting[random_next(seed) % ELEMENTSOF(interesting)];
			break;
		case 2:
			size = at;
			break;
		case 3: {
			size_t length = MIN_OF(size - at, INPUT_MAX - size);

			memmove(data + at + length, data + at, size - at);
			size += length;
			break;
		}
		default:
			data[at] = (uint8_t)random_next(seed);
			break;
		}
	}
	return size;
}

static int read_whole(int directory, const char *name, uint8_t *data, size_t *ret_size)
{
	_cleanup_close_ int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
	size_t size = 0;

	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t n = read(fd, data + size, INPUT_MAX - size);

		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size += (size_t)n;
	}
	*ret_size = size;
	return 0;
}

int main(int argc, char **argv)
{
	_cleanup_free_ uint8_t *input = malloc(INPUT_MAX), *mutated = malloc(INPUT_MAX);
	uint64_t seed = 0x9e3779b97f4a7c15u, runs = 0;
	unsigned long count;
	DIR *directory;

	if (argc != 3 || !input || !mutated)
		return EXIT_FAILURE;
	count = strtoul(argv[1], NULL, 10);
	directory = opendir(argv[2]);
	if (!directory) {
		perror(argv[2]);
		return EXIT_FAILURE;
	}

	for (struct dirent *entry; (entry = readdir(directory));) {
		size_t size = 0;

		if (entry->d_name[0] == '.')
			continue;
		if (read_whole(dirfd(directory), entry->d_name, input, &size) < 0) {
			perror(entry->d_name);
			return EXIT_FAILURE;
		}
		(void)LLVMFuzzerTestOneInput(input, size);
		runs++;
		for (unsigned long i = 0; i < count; i++, runs++) {
			/* A copy of exactly the size, so that a sanitizer sees each byte read past it. */
			_cleanup_free_ uint8_t *exact = NULL;
			size_t changed;

			memcpy(mutated, input, size);
			changed = mutate(mutated, size, &seed);
			exact = malloc(changed ?: 1);
			if (!exact)
				return EXIT_FAILURE;
			memcpy(exact, mutated, changed);
			(void)LLVMFuzzerTestOneInput(exact, changed);
		}
	}
	(void)closedir(directory);

	printf("%llu inputs\n", (unsigned long long)runs);
	return runs > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
