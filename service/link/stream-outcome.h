/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What has become of a connect(2) that did not wait. SO_ERROR does not say it: 0 there means that nothing has
 * failed so far. An ICMP error that comes wakes poll(2) by the queue of such errors (MSG_ERRQUEUE of recv(2)) before
 * it is the socket's own error, and whoever reads 0 in that moment takes a refusal for a connection.
 */

/*
 * fd: of TCP, not blocking. Call it when poll(2) tells something; what lies in the queue of errors is taken out,
 * so that poll(2) waits for what comes next. Return: 0 once it is connected, also when the peer has closed it since;
 * -EINPROGRESS as long as it is under way; another negative errno when it was refused, or ended by an error.
 */
int stream_outcome(int fd);
