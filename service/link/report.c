/* SPDX-License-Identifier: MIT */
#include "service/link/report.h"

#include <signal.h>
#include <sys/wait.h>

#include "dbus/names.h"

#define ORDERS_BYTES_MAX (2u * CS_REQUEST_BYTES_MAX)

static bool report_is_sane(const Report *report)
{
	switch (report->kind) {
	case REPORT_STOPPED:
	case REPORT_SIGNAL:
	case REPORT_KEY:
		return report->stage == 0 && report->number > 0 && report->number < NSIG;
	case REPORT_EXITED:
		return report->stage == 0 && report->number >= 0 &&
		       (WIFEXITED(report->number) || WIFSIGNALED(report->number));
	case REPORT_FAILED:
		return report->number > 0 &&
		       report->number < 4096; /* MAX_ERRNO of the kernel's err.h is 4095 */
	case REPORT_EXECUTED:
	case REPORT_CONTINUED:
	case REPORT_RESUME:
	case REPORT_RESUME_BEHIND:
	case REPORT_HANGUP:
	case REPORT_GO:
	case REPORT_READY:
		return report->stage == 0 && report->number == 0;
	case REPORT_KIND_MAX:
	default:
		return false;
	}
}

static void report_put(uint8_t data[static 4], uint32_t value)
{
	for (size_t i = 0; i < sizeof(value); i++)
		data[i] = (uint8_t)(value >> (8 * i));
}

void report_encode(const Report *report, uint8_t data[static REPORT_SIZE])
{
	report_put(data, (uint32_t)report->kind);
	report_put(data + 4, (uint32_t)report->stage);
	report_put(data + 8, (uint32_t)report->number);
}

int report_decode(const void *data, size_t size, Report *ret)
{
	Report report;
	PackReader r;
	int error;

	unpack_init(&r, data, size);
	report.kind = (ReportKind)unpack_enum(&r, REPORT_KIND_MAX);
	report.stage = (InitStage)unpack_enum(&r, INIT_STAGE_MAX);
	report.number = unpack_i32(&r);
	error = unpack_finish(&r);
	if (error)
		return error;
	if (!report_is_sane(&report))
		return -EBADMSG;
	*ret = report;
	return 0;
}

void init_orders_done(InitOrders *orders)
{
	strings_free(orders->argv);
	strings_free(orders->environment);
	free(orders->program);
	free(orders->cwd);
	*orders = (InitOrders){ 0 };
}

static bool orders_are_sane(const InitOrders *orders)
{
	return strings_count(orders->argv) > 0 && orders->program && orders->program[0] == '/' &&
	       orders->cwd && orders->cwd[0] == '/' &&
	       slots_are_valid(orders->descriptors, orders->further) &&
	       (orders->terminals & ~SLOTS_STANDARD) == 0 && (orders->descriptors & orders->terminals) == 0 &&
	       orders->file_mode_mask <= 0777;
}

int init_orders_encode(const InitOrders *orders, uint8_t **ret_data, size_t *ret_size)
{
	_cleanup_(pack_done) PackWriter w = { 0 };

	if (!orders_are_sane(orders))
		return -EINVAL;
	pack_init(&w, ORDERS_BYTES_MAX);
	pack_strings(&w, orders->argv);
	pack_strings(&w, orders->environment);
	pack_string(&w, orders->program);
	pack_string(&w, orders->cwd);
	pack_u32(&w, orders->descriptors);
	pack_u32(&w, orders->terminals);
	pack_bytes(&w, orders->further, sizeof(orders->further));
	pack_u32(&w, orders->file_mode_mask);
	pack_u64(&w, orders->ignored_signals);
	pack_u8(&w, orders->background);
	pack_u8(&w, orders->forbid_namespaces);
	if (w.error)
		return w.error;
	*ret_size = w.size;
	*ret_data = TAKE_PTR(w.data);
	return 0;
}

int init_orders_decode(const void *data, size_t size, InitOrders *ret)
{
	_cleanup_(init_orders_done) InitOrders orders = { 0 };
	uint8_t background, forbid;
	const void *further;
	size_t n_further;
	PackReader r;
	int error;

	if (size > ORDERS_BYTES_MAX)
		return -EBADMSG;
	unpack_init(&r, data, size);
	orders.argv = unpack_strings(&r, CS_REQUEST_STRINGS_MAX, CS_REQUEST_BYTES_MAX);
	orders.environment = unpack_strings(&r, CS_REQUEST_STRINGS_MAX, CS_REQUEST_BYTES_MAX);
	orders.program = unpack_string(&r, CS_PATH_BYTES_MAX);
	orders.cwd = unpack_string(&r, CS_PATH_BYTES_MAX);
	orders.descriptors = unpack_u32(&r);
	orders.terminals = unpack_u32(&r);
	further = unpack_bytes(&r, sizeof(orders.further), &n_further);
	if (n_further > 0)
		memcpy(orders.further, further, n_further);
	orders.file_mode_mask = unpack_u32(&r);
	orders.ignored_signals = unpack_u64(&r);
	background = unpack_u8(&r);
	forbid = unpack_u8(&r);
	error = unpack_finish(&r);
	if (error)
		return error;
	if (background > 1 || forbid > 1 || !orders_are_sane(&orders))
		return -EBADMSG;
	orders.background = background == 1;
	orders.forbid_namespaces = forbid == 1;
	*ret = orders;
	orders = (InitOrders){ 0 };
	return 0;
}
