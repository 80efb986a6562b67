/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Mount points that hold in every mount namespace which an agent can make.
 *
 * The kernel lets nobody rename, remove or replace what is a mount point in the mount namespace of whoever
 * tries (EBUSY), and in that alone. So an agent that makes a user and a mount namespace, moves to another
 * root there (pivot_root(2)) and takes the jail's mounts down could replace what they lay on, by a descriptor
 * of the directory that it opened before; on the host, where the person's shell runs it.
 *
 * Therefore the jail's root has something under it. Before the holder becomes bwrap it makes a mount
 * namespace in which a private tmpfs lies below the root: not in a directory, but at the very place that the
 * root covers. In that tmpfs each read-write bind is mounted once more, and in it, on themselves, all places
 * that the jail mounts something on. Whatever namespace is made from this one, by bwrap or by an agent, is a
 * copy of the whole (clone(2), CLONE_NEWNS), this tmpfs and its mounts too, and:
 *
 *   - no path leads there: ".." goes from a root to the directory that it is mounted on, and where that is a
 *     root itself, on to the next (path_resolution(7));
 *   - nothing that covers it can be taken away: mounts that came from a namespace of another user namespace
 *     are locked together, and pivot_root(2) hands that lock from the old root to the new one
 *     (mount_namespaces(7), "Restrictions on mount namespaces").
 *
 * What a kernel has to make a mount namespace that is no such copy (open_tree(2), fsmount(2), unshare(2) and
 * clone3(2) with flags of Linux 7) the jail's seccomp filter refuses.
 *
 * The person outside is not held by any of it: there the places are no mount points. mask-watch.h has that.
 */

#include "service/plan/bwrap-args.h"

/*
 * bwrap goes to the places of its mounts by path, makes what is missing there, and follows links; it has the
 * whole host beside the new root meanwhile. An agent of another session may put a link on that way at any
 * moment. So in this namespace everything is read-only but the sources of the read-write binds: what bwrap
 * makes lies in its own new root or where agents may write anyway.
 */

/*
 * The session's side: which places of plan have to hold, as text for anchors_make(). first_place: the number
 * that the first descriptor of arguments has for the holder. Return: 0, with *ret_text NULL where nothing has
 * to be held; -ENOMEM.
 */
int anchors_list(const Plan *plan, const BwrapArguments *arguments, int first_place, char **ret_text,
		 size_t *ret_size);

/*
 * The holder's side: make the mount namespace, of the calling process, which must own its user namespace.
 * text: of anchors_list(); fds: what the numbers in it stand for. The root stays what it is. Return: 0; a
 * negative errno with *ret_problem, and the process is good for nothing any more: -ESTALE when a bind is no
 * longer where the plan found it.
 */
int anchors_make(const char *text, size_t size, const int *fds, size_t n_fds, char **ret_problem);
