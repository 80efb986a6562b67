/* SPDX-License-Identifier: MIT */

/*
 * allow-device and gpu: 2 of the order in mounts.c, into the fresh /dev. By path, since bwrap binds with
 * device access by path alone: only root can put another node there, and a plan knows none but what lies in
 * /dev. A node of allow-device that has gone is a warning, since things are unplugged; one that nobody may
 * have refuses the launch, since whoever wrote it believes in more than there is.
 */

#include "service/plan/device-rules.h"
#include "service/plan/plan-build.h"

#define GRAPHICS_MAX 32u
#define NAMES_MAX 8192u

static bool is_given(const Plan *plan, const char *path)
{
	const Entry *entry = plan_covering(plan, path);

	return entry && entry->kind == ENTRY_BIND && entry->device;
}

/* What bwrap's fresh /dev holds by itself. */
static bool is_standard(const char *path)
{
	static const char *const standard[] = { "/dev/full", "/dev/null", "/dev/random", "/dev/urandom",
						"/dev/zero" };

	for (size_t i = 0; i < ELEMENTSOF(standard); i++)
		if (streq(path, standard[i]))
			return true;
	return false;
}

static int allow_device(PlanBuild *build, const ConfigValue *value)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	const char *cause;

	int r = build->view->resolve(build->view->userdata, value->text, &node);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return plan_warn(build->plan, "%s: allow-device %s is not given: %s", value->origin,
				 value->text, strerror(-r));
	cause = S_ISDIR(node.mode) ? "it is a directory, and devices are named one by one"
				   : device_refusal(&node);
	if (cause)
		return build_refuse(build, CS_ERROR_PLAN_REFUSED,
				    "%s: allow-device %s is refused: %s; remove it", value->origin, node.path,
				    cause);
	if (is_standard(node.path) || is_given(build->plan, node.path))
		return 0;
	r = build_links(build, value->text, value->origin);
	return r < 0 ? r : plan_add_device(build->plan, &node, node.path, value->origin, "allow-device");
}

typedef struct Graphics {
	PlanBuild *build;
	const char *origin;
	size_t n;
} Graphics;

static int add_graphics(Graphics *graphics, const char *path)
{
	_cleanup_(plan_node_done) PlanNode node = PLAN_NODE_INIT;
	PlanBuild *build = graphics->build;

	int r = build->view->resolve(build->view->userdata, path, &node);
	if (r == -ENOMEM)
		return r;
	/* A directory of drivers is given as a whole: programs look for the links in it. */
	if (r < 0 || !streq(node.path, path) || !(S_ISDIR(node.mode) || S_ISCHR(node.mode)) ||
	    (S_ISCHR(node.mode) && device_refusal(&node)) || is_given(build->plan, path))
		return 0;
	if (++graphics->n > GRAPHICS_MAX)
		return 0;
	return plan_add_device(build->plan, &node, path, graphics->origin, "graphics device");
}

static int add_named(void *userdata, const char *name)
{
	static const char *const prefixes[] = { "nvidia", "kfd", "dxg", "mali" };
	_cleanup_free_ char *path = NULL;

	for (size_t i = 0; i < ELEMENTSOF(prefixes); i++) {
		if (!starts_with(name, prefixes[i]))
			continue;
		if (asprintf(&path, "/dev/%s", name) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		return add_graphics(userdata, path);
	}
	return 0;
}

static int build_graphics(PlanBuild *build)
{
	size_t index = 0;
	const ConfigValue *value = config_next(&build->request->config, CONFIG_GPU, &index);
	Graphics graphics = { .build = build, .origin = value ? value->origin : "gpu" };

	int r = add_graphics(&graphics, "/dev/dri");
	if (r >= 0)
		r = add_graphics(&graphics, "/dev/accel");
	if (r >= 0)
		r = build->view->list(build->view->userdata, "/dev", NAMES_MAX, add_named, &graphics);
	if (r < 0 && r != -ENOENT && r != -EACCES && r != -E2BIG)
		return r;
	if (graphics.n == 0)
		return plan_warn(build->plan,
				 "%s: gpu gives nothing: there is no graphics device in /dev; install its "
				 "driver, or give it to the container",
				 graphics.origin);
	if (graphics.n > GRAPHICS_MAX)
		return plan_warn(build->plan,
				 "%s: gpu gives %u of %zu graphics devices; name others with allow-device",
				 graphics.origin, GRAPHICS_MAX, graphics.n);
	return 0;
}

int build_devices(PlanBuild *build)
{
	const Config *config = &build->request->config;
	const ConfigValue *value;
	size_t index = 0;
	int r = 0;

	if (config_flag(config, CONFIG_GPU))
		r = build_graphics(build);
	while (r >= 0 && (value = config_next(config, CONFIG_ALLOW_DEVICE, &index)))
		r = allow_device(build, value);
	return r;
}
