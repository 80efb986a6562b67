/* SPDX-License-Identifier: MIT */
#include "shim/install-lock.h"

#include <json-c/json.h>

#define DEPTH_MAX 16
#define DIRECTORY "node_modules/"

/* "sha512-" and the base 64 of 64 bytes (W3C Subresource Integrity). */
#define DIGEST_START "sha512-"
#define DIGEST_LENGTH 88u
#define DIGEST_PADDING "=="
#define BASE64 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

struct InstallLock {
	json_object *root;
	json_object *packages; /* borrowed from root */
};

static json_object *get(json_object *object, const char *key)
{
	json_object *value = NULL;

	return json_object_object_get_ex(object, key, &value) ? value : NULL;
}

/* A string without a zero byte in it, or NULL. */
static const char *get_string(json_object *object, const char *key)
{
	json_object *value = get(object, key);
	const char *text;

	if (!json_object_is_type(value, json_type_string))
		return NULL;
	text = json_object_get_string(value);
	return strlen(text) == (size_t)json_object_get_string_len(value) ? text : NULL;
}

static bool is_digest(const char *text)
{
	const char *base64 = text ? starts_with(text, DIGEST_START) : NULL;

	return base64 && strlen(base64) == DIGEST_LENGTH &&
	       strspn(base64, BASE64) == DIGEST_LENGTH - strlen(DIGEST_PADDING) &&
	       streq(base64 + DIGEST_LENGTH - strlen(DIGEST_PADDING), DIGEST_PADDING);
}

/* Relative, without an empty, "." or ".." component. */
static bool is_place(const char *path)
{
	if (!starts_with(path, DIRECTORY))
		return false;
	for (const char *p = path;;) {
		size_t n = strcspn(p, "/");

		if (n == 0 || (p[0] == '.' && (n == 1 || (n == 2 && p[1] == '.'))))
			return false;
		if (p[n] == '\0')
			return true;
		p += n + 1;
	}
}

static int check_package(const char *place, json_object *package, char **reterr)
{
	json_object *resolved;

	if (!is_place(place))
		return refuse(reterr, -EBADMSG, "the package '%s' would lie outside of node_modules", place);
	if (!json_object_is_type(package, json_type_object) || !get_string(package, "version"))
		return refuse(reterr, -EBADMSG, "the package %s has no version", place);
	if (get(package, "link") || get(package, "inBundle"))
		return refuse(reterr, -EBADMSG, "the package %s is a part of another place or package",
			      place);

	resolved = get(package, "resolved");
	if (resolved) {
		const char *address = get_string(package, "resolved");

		if (!address || !(starts_with(address, "https://") || starts_with(address, "http://")))
			return refuse(reterr, -EBADMSG, "the package %s comes from no registry: %s", place,
				      address ? address : "its address is no text");
	}
	if (!is_digest(get_string(package, "integrity")))
		return refuse(reterr, -EBADMSG,
			      "the registry has no SHA-512 digest of the package %s: what comes could not be "
			      "checked",
			      place);
	return 0;
}

static int check(const InstallLock *lock, char **reterr)
{
	if (!json_object_is_type(lock->root, json_type_object) ||
	    json_object_get_int(get(lock->root, "lockfileVersion")) != 3 ||
	    !json_object_is_type(lock->packages, json_type_object))
		return refuse(reterr, -EBADMSG, "npm's list of packages is of another form");
	if (json_object_object_length(lock->packages) > INSTALL_LOCK_PACKAGES_MAX)
		return refuse(reterr, -EBADMSG, "more than %d packages", INSTALL_LOCK_PACKAGES_MAX);

	json_object_object_foreach(lock->packages, place, package)
	{
		if (streq(place, "")) /* the directory that it is installed into */
			continue;
		int r = check_package(place, package, reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

int install_lock_parse(const char *text, size_t size, InstallLock **ret, char **reterr)
{
	_cleanup_(install_lock_freep) InstallLock *lock = NULL;
	json_tokener *tokener;
	bool whole;
	int r;

	if (size > INSTALL_LOCK_BYTES_MAX)
		return refuse(reterr, -EBADMSG, "npm's list of packages is longer than %u bytes",
			      INSTALL_LOCK_BYTES_MAX);
	lock = calloc(1, sizeof(*lock));
	tokener = json_tokener_new_ex(DEPTH_MAX);
	if (!lock || !tokener) {
		if (tokener)
			json_tokener_free(tokener);
		return refuse(reterr, -ENOMEM, "not enough memory");
	}
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8 |
						JSON_TOKENER_ALLOW_TRAILING_CHARS);
	lock->root = json_tokener_parse_ex(tokener, text, (int)size);
	whole = json_tokener_get_error(tokener) == json_tokener_success;
	json_tokener_free(tokener);
	if (!whole)
		return refuse(reterr, -EBADMSG, "npm's list of packages is not JSON");
	lock->packages = get(lock->root, "packages");

	r = check(lock, reterr);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(lock);
	return 0;
}

InstallLock *install_lock_free(InstallLock *lock)
{
	if (lock)
		json_object_put(lock->root);
	free(lock);
	return NULL;
}

static json_object *find(const InstallLock *lock, const char *package)
{
	_cleanup_free_ char *place = NULL;

	if (asprintf(&place, DIRECTORY "%s", package) < 0) {
		place = NULL;
		return NULL;
	}
	return get(lock->packages, place);
}

const char *install_lock_version(const InstallLock *lock, const char *package)
{
	json_object *found = find(lock, package);

	return found ? get_string(found, "version") : NULL;
}

const char *install_lock_optional(const InstallLock *lock, const char *package, const char *dependency)
{
	json_object *found = find(lock, package);

	found = found ? get(found, "optionalDependencies") : NULL;
	return found ? get_string(found, dependency) : NULL;
}
