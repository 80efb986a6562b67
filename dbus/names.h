/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Every name of the contract, written once: the bus, the errors, polkit's actions, and the places of the
 * installed product. CS_VERSION comes from the build.
 */

/* Bus */
#define CS_BUS_NAME "org.claudesandbox1"
#define CS_MANAGER_PATH "/org/claudesandbox1"
#define CS_SESSION_ROOT "/org/claudesandbox1/session"
#define CS_MANAGER_INTERFACE "org.claudesandbox1.Manager"
#define CS_SESSION_INTERFACE "org.claudesandbox1.Session"

/* Members that clients call or watch */
#define CS_MEMBER_LAUNCH "Launch"
#define CS_OPTION_BACKGROUND "background"   /* of Launch */
#define CS_OPTION_CALL "call"               /* of Verify and Doctor: send the signal Row, with this */
#define CS_OPTION_ENVIRONMENT "environment" /* of Doctor, likewise */
#define CS_OPTION_CWD "cwd"
#define CS_OPTION_AGENT "agent"
#define CS_OPTION_PROBES "probes" /* of Verify */
#define CS_MEMBER_DOCTOR "Doctor"
#define CS_MEMBER_VERIFY "Verify"
#define CS_MEMBER_LIST_ALLOW_IP "ListAllowIp"
#define CS_MEMBER_ADD_ALLOW_IP "AddAllowIp"
#define CS_MEMBER_REMOVE_ALLOW_IP "RemoveAllowIp"
#define CS_MEMBER_LIST_SESSIONS "ListSessions"
#define CS_MEMBER_LIST_ALL_SESSIONS "ListAllSessions"
#define CS_MEMBER_SUBSCRIBE "Subscribe"
#define CS_MEMBER_UNSUBSCRIBE "Unsubscribe"
#define CS_MEMBER_STOP_SESSION "StopSession"
#define CS_MEMBER_GET_POLICY "GetPolicy"
#define CS_MEMBER_STOP "Stop"
#define CS_MEMBER_LIST_ROUTES "ListRoutes"
#define CS_MEMBER_LIST_EXPOSURE "ListExposure"
#define CS_MEMBER_LIST_ENVIRONMENT "ListEnvironment"
#define CS_MEMBER_LIST_PORTS "ListPorts"
#define CS_MEMBER_LIST_DENIED "ListDenied"
#define CS_MEMBER_ALLOW_IP "AllowIp"
#define CS_MEMBER_REVOKE_IP "RevokeIp"
#define CS_SIGNAL_SESSION_ADDED "SessionAdded"
#define CS_SIGNAL_SESSION_REMOVED "SessionRemoved"
#define CS_SIGNAL_ALLOW_IP_CHANGED "AllowIpChanged"
#define CS_SIGNAL_POLICY_CHANGED "PolicyChanged"
#define CS_SIGNAL_ROW "Row"
#define CS_SIGNAL_DENIED "Denied"
#define CS_SIGNAL_STATE_CHANGED "StateChanged"

#define CS_MEMBER_LIST_EVENTS "ListEvents"
#define CS_SIGNAL_EVENT "Event"
/* One event of the audit log: time, kind, uid, session, details */
#define CS_EVENT_SIGNATURE "(tsusa{ss})"

/* Properties of the manager that clients read */
#define CS_PROPERTY_VERSION "Version"
#define CS_PROPERTY_CONFIG_ERROR "ConfigError"

/* Properties of a session */
#define SESSION_PROPERTY_ID "Id"
#define SESSION_PROPERTY_AGENT "Agent"
#define SESSION_PROPERTY_USER "User"
#define SESSION_PROPERTY_UID "Uid"
#define SESSION_PROPERTY_WORKSPACE "Workspace"
#define SESSION_PROPERTY_STARTED "Started"
#define SESSION_PROPERTY_STATE "State"
#define SESSION_PROPERTY_LEADER "Leader"
#define SESSION_PROPERTY_JAILED "Jailed"
#define SESSION_PROPERTY_WARNINGS "Warnings"
#define SESSION_PROPERTY_POSTURE "Posture"
#define SESSION_PROPERTY_EXIT_STATUS "ExitStatus"
#define SESSION_PROPERTY_DENIED "Denied"

/* Errors: one for each way to refuse. dbus/errors.c gives each its fallback sentence. */
#define CS_ERROR_PREFIX "org.claudesandbox1.Error."
#define CS_ERROR_NOT_AUTHORIZED CS_ERROR_PREFIX "NotAuthorized"
#define CS_ERROR_NESTED_CALLER CS_ERROR_PREFIX "NestedCaller"
#define CS_ERROR_BAD_CONFIGURATION CS_ERROR_PREFIX "BadConfiguration"
#define CS_ERROR_BAD_REQUEST CS_ERROR_PREFIX "BadRequest"
#define CS_ERROR_UNSAFE_WORKSPACE CS_ERROR_PREFIX "UnsafeWorkspace"
#define CS_ERROR_UNSAFE_ENTRY_POINT CS_ERROR_PREFIX "UnsafeEntryPoint"
#define CS_ERROR_AGENT_MISSING CS_ERROR_PREFIX "AgentMissing"
#define CS_ERROR_JAIL_UNAVAILABLE CS_ERROR_PREFIX "JailUnavailable"
#define CS_ERROR_ROUTES_DIFFER CS_ERROR_PREFIX "RoutesDiffer"
#define CS_ERROR_LIMITS_EXCEEDED CS_ERROR_PREFIX "LimitsExceeded"
#define CS_ERROR_NO_SUCH_SESSION CS_ERROR_PREFIX "NoSuchSession"
#define CS_ERROR_PLAN_REFUSED CS_ERROR_PREFIX "PlanRefused"
#define CS_ERROR_SESSION_DIED CS_ERROR_PREFIX "SessionDied"
#define CS_ERROR_SESSION_SILENT CS_ERROR_PREFIX "SessionSilent"
#define CS_ERROR_SHUTTING_DOWN CS_ERROR_PREFIX "ShuttingDown"

/* polkit */
#define CS_ACTION_LAUNCH "org.claudesandbox1.launch"
#define CS_ACTION_WIDEN "org.claudesandbox1.widen"
#define CS_ACTION_EDIT_ALLOW_IP "org.claudesandbox1.edit-allow-ip"
#define CS_ACTION_MANAGE_SESSIONS "org.claudesandbox1.manage-sessions"

/* The journal's MESSAGE_ID of each kind of event (systemd.journal-fields(7)): never another one. */
#define CS_MESSAGE_LAUNCH "7c60de48b405498988d422b9d1855e1b"
#define CS_MESSAGE_POSTURE "cb8103f0f7b54e6d91f9044a91d6bb1a"
#define CS_MESSAGE_REFUSED "22d0d9034c5a4feb937e9517ce8af425"
#define CS_MESSAGE_STOP "800d8f1f03474e24b0cdfaab22573187"
#define CS_MESSAGE_ADOPTED "4658ce03564446c7aec828f6d97166bc"
#define CS_MESSAGE_ALLOW_IP "89ca5cb8ed1b4560a4acfa22e4e01703"
#define CS_MESSAGE_DENIED "9776c96cf13344a98f3e1faa940c2df8"
#define CS_MESSAGE_EXIT "638f41ca788b439297324358b5c14cfe"

/* Places. Absolute and fixed: nothing that a caller says moves them. */
#define CS_CONFIG_PATH "/etc/claude-sandbox.conf"
#define CS_GITCONFIG_PATH "/etc/claude-gitconfig"
#define CS_GIT_IGNORE_PATH "/run/claude-sandbox/git-ignore"
#define CS_GIT_ATTRIBUTES_PATH "/run/claude-sandbox/git-attributes"
#define CS_LIBEXEC_DIR "/usr/libexec/claude-sandbox"
#define CS_AGENTS_DIR CS_LIBEXEC_DIR "/agents"
#define CS_ENTRY_PATH CS_LIBEXEC_DIR "/entry"
/* The name of an ELF note (elf(5)) in it, by which a copy is known wherever it lies. */
#define CS_ENTRY_NOTE "claude-sandbox entry"
/* What lets the bus know the service, start it, and polkit know its actions */
#define CS_BUS_POLICY_PATH "/usr/share/dbus-1/system.d/" CS_BUS_NAME ".conf"
#define CS_ACTIVATION_PATH "/usr/share/dbus-1/system-services/" CS_BUS_NAME ".service"
#define CS_ACTIONS_PATH "/usr/share/polkit-1/actions/" CS_BUS_NAME ".policy"
#define CS_APPARMOR_PATH "/usr/share/claude-sandbox/apparmor/claude-sandbox"
#define CS_DAEMON_PATH CS_LIBEXEC_DIR "/claude-sandboxd"
#define CS_LAUNCH_PATH CS_LIBEXEC_DIR "/launch"
#define CS_SESSION_PATH CS_LIBEXEC_DIR "/session"
#define CS_INIT_PATH CS_LIBEXEC_DIR "/init"
#define CS_VERIFY_PATH CS_LIBEXEC_DIR "/verify"
#define CS_BIN_DIR "/usr/local/bin"
#define CS_COMMAND_PATH CS_BIN_DIR "/claude-sandbox"
#define CS_RUN_DIR "/run/claude-sandbox"
#define CS_SESSIONS_DIR CS_RUN_DIR "/sessions"
/* Inside: a script of ours that starts an agent, where the home has no place for it. */
#define CS_STARTER_DIR CS_RUN_DIR "/bin"
#define CS_MARKER_PATH CS_RUN_DIR "/inside"
/* What the marker holds: the profile's name, and the absolute path inside of the agent's program. */
#define CS_MARKER_FORMAT "%s\n%s\n"
#define CS_TEMP_ROOT "/var/tmp/claude-agent"
/* Inside: the workspace of an agent that needs none, empty and gone with the session. */
#define CS_NO_WORKSPACE "/tmp/no-workspace"
/* What a session's checks aim at (its user's socket; see service/link/bait-name.h), where every jail has a
 * /tmp of its own. */
#define CS_BAIT_FORMAT "/tmp/.claude-sandbox-%s"
/* Root's; a file for each uid. */
#define CS_LOG_DIR "/var/log/claude-sandbox"

/* A session's id: 16 characters of [a-z2-7] (RFC 4648 base 32, lower case). */
#define CS_ID_LENGTH 16

/* Bounds of a request: what execve(2) takes in all on Linux with an 8 MiB stack. */
#define CS_REQUEST_BYTES_MAX (2u * 1024 * 1024)
#define CS_REQUEST_STRINGS_MAX 65536u
#define CS_PATH_BYTES_MAX 4096u

/* Exit statuses of our own programs. */
#define CS_EXIT_FOUND 1
#define CS_EXIT_USAGE 2
#define CS_EXIT_REFUSED 125
#define CS_EXIT_MISSING 127

/*
 * The program of ListDenied's rows that came while the session was checked, from nobody who was found among
 * the agent's processes: longer than the name of any process (proc(5), comm).
 */
#define CS_DENIED_CHECKED "? while verify ran"
