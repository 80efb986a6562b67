/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * WHAT THE BATTERY EXPECTS: a copy of the plan for `verify`, which measures the jail against it, and what the
 * session found outside that nothing inside can tell. It is made of the same list as bwrap's arguments
 * (mounts.h), so an entry that is not in the jail has a row that misses it. Handed over as a sealed memfd.
 *
 * expectations.c is the codec, libc only, and is linked into the jail; expectations-make.c derives.
 */

#include <sys/types.h>

#include "dbus/base.h"
#include "service/plan/mounts.h"
#include "service/plan/routes.h"

#define EXPECTATIONS_BYTES_MAX (4u * 1024 * 1024)

/* What is to be measured. */
typedef enum BatteryKind {
	BATTERY_CHECKS,            /* the 22 rows */
	BATTERY_CHECKS_AND_PROBES, /* and the attempts to get out */
	BATTERY_DOCTOR,            /* what Doctor wants to know from inside */
	BATTERY_KIND_MAX,
} BatteryKind;

/* Namespaces, in the order of their numbers here; the names are those in /proc/PID/ns (namespaces(7)). */
typedef enum NamespaceKind {
	NAMESPACE_PID,
	NAMESPACE_IPC,
	NAMESPACE_UTS,
	NAMESPACE_MNT,
	NAMESPACE_USER,
	NAMESPACE_CGROUP,
	NAMESPACE_NET,
	NAMESPACE_KIND_MAX,
} NamespaceKind;

/* Sets of capabilities, as /proc/PID/status orders them. */
typedef enum CapabilitySet {
	CAPABILITY_INHERITABLE,
	CAPABILITY_PERMITTED,
	CAPABILITY_EFFECTIVE,
	CAPABILITY_BOUNDING,
	CAPABILITY_AMBIENT,
	CAPABILITY_SET_MAX,
} CapabilitySet;

/* Where a file object is: what stat(2) says, in any mount namespace. */
typedef struct ObjectIdentity {
	bool known;
	uint64_t device, inode; /* st_dev, st_ino */
	uint64_t node;          /* st_rdev of a device */
	mode_t mode;            /* st_mode */
	uid_t uid;
} ObjectIdentity;

typedef struct ExpectedEntry {
	EntryKind kind;
	EntryMode mode;
	char *path;   /* canonical, inside */
	char *source; /* canonical, outside; NULL where there is none */
	bool device, covers_listener, pin, placeholder;
	bool anchored;      /* it keeps a name in its place that agents could change but for it */
	mode_t permissions; /* of what is made: never 0 for a tmpfs, directory or file */
	void *data;         /* ENTRY_LINK: text with its NUL; ENTRY_FILE: data_size bytes */
	size_t data_size;
	ObjectIdentity object; /* of the source of a bind */
	char *origin;
} ExpectedEntry;

/* A file of the sandbox's own, or of its configuration: agents must not change it. */
typedef struct ExpectedFile {
	char *path;
	ObjectIdentity object; /* outside; unknown where there is none */
} ExpectedFile;

/* What an agent keeps outside, of this user's, that no session may see: its state is in three kinds (profile.h). */
typedef enum StateKind {
	STATE_HOME,        /* where those lie and would be made: never tried by itself */
	STATE_ALL,         /* the directory, and with it every name that no list has */
	STATE_ORDERS,      /* what a running agent takes orders from */
	STATE_SESSION,     /* what is of a session */
	STATE_TRANSCRIPTS, /* of all projects */
	STATE_KIND_MAX,
} StateKind;

typedef struct ExpectedState {
	StateKind kind;
	char *base;            /* the state directory of that agent */
	char *path;            /* it, or below it */
	ObjectIdentity object; /* outside; unknown where there is none */
} ExpectedState;

typedef struct ExpectedVariable {
	char *name;
	char *value; /* NULL where it may be a secret: the name alone is expected */
	char *origin;
} ExpectedVariable;

typedef struct ExpectedRoute {
	uint32_t address; /* host byte order */
	uint8_t length;
	RouteVerdict verdict;
	char *reason;
} ExpectedRoute;

/* A process of the jail, as it is seen from outside. */
typedef struct ExpectedProcess {
	uint32_t pid; /* outside */
	char *name;
	bool no_new_privileges;
	uint32_t seccomp;         /* "Seccomp:" of /proc/PID/status: 2 for a filter */
	uint32_t seccomp_filters; /* "Seccomp_filters:" */
	uint32_t pid_depth;       /* numbers in "NSpid:" beyond those of the session itself */
	uint64_t capabilities[CAPABILITY_SET_MAX];
	uint64_t namespaces[NAMESPACE_KIND_MAX]; /* inode numbers; 0: could not be read */
	bool below; /* it made itself namespaces beyond the jail's (an agent's own sandbox): its capabilities
		       are those of its own user namespace */
} ExpectedProcess;

/*
 * Listeners of the session's, outside, for the probes to aim at: who gets the token has escaped. Each sends
 * the token, without its NUL, at once to whoever connects and as the answer to every datagram. TCP4 and UDP4
 * have one port, TCP6 and UDP6 another: whatever leads to one protocol is tried with both.
 */
typedef enum BaitKind {
	BAIT_TCP4, /* 127.0.0.1 of the host */
	BAIT_UDP4,
	BAIT_TCP6, /* ::1 of the host */
	BAIT_UDP6,
	BAIT_ABSTRACT, /* a stream socket of the host's network namespace */
	BAIT_PATH,     /* a stream socket in a place that the jail hides */
	BAIT_KIND_MAX,
} BaitKind;

typedef struct ExpectedBait {
	BaitKind kind;
	uint16_t port; /* of the first four */
	char *name;    /* abstract: without the leading NUL; path: absolute, outside */
} ExpectedBait;

/* What the session measured outside, and what its configuration names. Everything borrowed. */
typedef struct ExpectationFacts {
	BatteryKind battery;
	bool joined;                             /* a running session is judged by a process that joined it */
	uint64_t namespaces[NAMESPACE_KIND_MAX]; /* of the session itself, which are the service's; inodes */
	uint64_t jail_namespaces[NAMESPACE_KIND_MAX]; /* of the jail's init, seen from outside; 0: unknown */
	const char *hostname;                         /* outside */
	ObjectIdentity terminal;                      /* of the session's terminal; unknown without one */
	const char *routes_problem; /* what the netlink read-back found, or NULL: nothing differs */
	const RouteTable *routes;   /* NULL when not jailed */
	const char *host_mounts;    /* /proc/self/mountinfo of the session, or NULL: what below a bind is a
				       mount of the host's */
	const char
		*jail_mounts; /* the same of the jail's init, seen from outside; NULL: verify reads its own */
	/* What an entry binds: fstat(2) of its source, or of its path for a device. Return: 0 or -errno. */
	int (*identify)(const Entry *entry, ObjectIdentity *ret);
	/* What is at a path outside, by stat(2): not known where there is nothing. */
	ObjectIdentity (*identify_path)(const char *path);
	const ExpectedProcess *processes;
	size_t n_processes;
	const ExpectedBait *baits;
	size_t n_baits;
	const char *bait_token; /* what each bait answers; NULL without baits */
	/* Addresses of the host's own, host byte order, for the probes that look for it. */
	const uint32_t *host_addresses;
	size_t n_host_addresses;
	bool resolver; /* the host has a name server, so D has to answer */
	bool online;   /* the wire is there */
} ExpectationFacts;

typedef struct Expectations {
	BatteryKind battery;
	bool joined, jailed, private_proc, forbid_namespaces, resolver, online;
	uint64_t namespaces[NAMESPACE_KIND_MAX], jail_namespaces[NAMESPACE_KIND_MAX];
	char *hostname;
	ObjectIdentity terminal;
	char *host_mounts;    /* NULL: not told */
	char *jail_mounts;    /* likewise */
	char *routes_problem; /* NULL: nothing differs */

	char *agent;   /* the profile's name */
	char *program; /* the agent's path inside */
	char *workspace, *cwd;
	char *home; /* of passwd, as the environment has it */
	char *user;
	uid_t uid;
	gid_t gid;
	ExpectedEntry *entries;
	size_t n_entries;
	ExpectedFile *files;
	size_t n_files;
	ExpectedState *states;
	size_t n_states;
	ExpectedVariable *variables;
	size_t n_variables;
	char **guarded;       /* directories of the entry-point guard */
	char **allowed_write; /* what allow-write names, canonical or as it is spelled */
	char **allowed_device;
	char **passed; /* names that pass-env lets through */

	ExpectedRoute *routes;
	size_t n_routes;
	uint32_t forwarder;    /* D; 0: none */
	uint16_t *local_ports; /* the host's that are in the jail */
	size_t n_local_ports;
	uint16_t *callback_ports;
	size_t n_callback_ports;
	uint32_t *host_addresses;
	size_t n_host_addresses;

	ExpectedProcess *processes;
	size_t n_processes;
	ExpectedBait *baits;
	size_t n_baits;
	char *bait_token; /* NULL without baits */
} Expectations;

void expectations_done(Expectations *expectations);
/*
 * Derive them. plan and request: of the session; values that may be secrets (pass-env) are left out. Return:
 * 0, -ENOMEM, or what identify answered.
 */
int expectations_make(const Plan *plan, const SessionRequest *request, const ExpectationFacts *facts,
		      Expectations *ret);
int expectations_encode(const Expectations *expectations, uint8_t **ret_data, size_t *ret_size);
/* Return: 0, -EBADMSG, -ENOMEM. */
int expectations_decode(const void *data, size_t size, Expectations *ret);

/* The entry that decides what is seen at path: the last one at or above it; NULL before "/". */
const ExpectedEntry *expectations_covering(const Expectations *expectations, const char *path);
/* What the table of routes says of an address (host byte order): of the rows that hold it the narrowest, an
 * opening before a denial; ROUTE_DENY without any. */
RouteVerdict expectations_verdict(const Expectations *expectations, uint32_t address);
/* "pid", "ipc", ..., as in /proc/PID/ns. */
const char *namespace_kind_to_string(NamespaceKind kind);
