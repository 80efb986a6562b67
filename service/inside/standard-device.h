/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * In the jail: where fd is /dev/null or one of its like, put the jail's own in its place, opened in the same
 * way. The caller's is mounted writable: by it an agent of root's could change the mode of the machine's
 * device (fchmod(2)); the jail's is not. Return: 0 also for everything else; a negative errno.
 */
int standard_device_replace(int fd);
