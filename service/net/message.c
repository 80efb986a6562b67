/* SPDX-License-Identifier: MIT */
#include "service/net/message.h"

#include <arpa/inet.h>

void message_list_done(MessageList *list)
{
	free(list->data);
	*list = (MessageList){ 0 };
}

int message_list_add(MessageList *list, const struct nlmsghdr *header)
{
	size_t length = NLMSG_ALIGN((size_t)header->nlmsg_len);

	if (length > MESSAGE_LIST_BYTES_MAX - list->size)
		return -EMSGSIZE;

	if (length > list->allocated - list->size) {
		size_t wanted = MAX_OF(list->allocated * 2, list->size + length);
		uint8_t *data = realloc(list->data, MAX_OF(wanted, (size_t)4096));
		if (!data)
			return -ENOMEM;
		list->data = data;
		list->allocated = MAX_OF(wanted, (size_t)4096);
	}

	memset(list->data + list->size, 0, length);
	memcpy(list->data + list->size, header, header->nlmsg_len);
	list->size += length;
	list->n_messages++;
	return 0;
}

const struct nlmsghdr *message_list_next(const MessageList *list, size_t *offset)
{
	const struct nlmsghdr *header;

	return message_walk(list->data, list->size, offset, &header) > 0 ? header : NULL;
}

int message_walk(const void *data, size_t size, size_t *offset, const struct nlmsghdr **ret)
{
	const struct nlmsghdr *header;
	size_t left;

	if (*offset >= size)
		return 0;
	left = size - *offset;
	if (left < sizeof(*header))
		return -EBADMSG;

	header = (const void *)((const uint8_t *)data + *offset);
	if (header->nlmsg_len < sizeof(*header) || header->nlmsg_len > left)
		return -EBADMSG;

	*offset += MIN_OF(NLMSG_ALIGN((size_t)header->nlmsg_len), left);
	*ret = header;
	return 1;
}

const void *message_body(const struct nlmsghdr *header, size_t size, const void **ret_attributes,
			 size_t *ret_size)
{
	const uint8_t *body = (const uint8_t *)header + NLMSG_HDRLEN;
	size_t room = header->nlmsg_len - NLMSG_HDRLEN;
	size_t aligned = NLMSG_ALIGN(size);

	if (room < size)
		return NULL;
	*ret_attributes = room > aligned ? body + aligned : NULL;
	*ret_size = room > aligned ? room - aligned : 0;
	return body;
}

int attributes_sort(const void *data, size_t size, const struct rtattr **slots, size_t n_slots,
		    uint16_t *ret_unknown)
{
	const uint8_t *bytes = data;
	uint16_t unknown = 0;
	size_t offset = 0;

	for (size_t i = 0; i < n_slots; i++)
		slots[i] = NULL;

	while (offset < size) {
		const struct rtattr *attribute = (const void *)(bytes + offset);
		size_t left = size - offset;
		uint16_t type;

		if (left < sizeof(*attribute) || attribute->rta_len < sizeof(*attribute) ||
		    attribute->rta_len > left)
			return -EBADMSG;

		/* No attribute of rtnetlink has the number 0. */
		type = attribute->rta_type & NLA_TYPE_MASK;
		if (type == 0)
			return -EBADMSG;
		if (type < n_slots) {
			if (slots[type])
				return -EBADMSG;
			slots[type] = attribute;
		} else if (unknown == 0)
			unknown = type;
		offset += MIN_OF(RTA_ALIGN((size_t)attribute->rta_len), left);
	}

	if (ret_unknown)
		*ret_unknown = unknown;
	return 0;
}

int attributes_nested(const struct rtattr *attribute, const struct rtattr **slots, size_t n_slots,
		      uint16_t *ret_unknown)
{
	return attributes_sort(RTA_DATA(attribute), attribute_size(attribute), slots, n_slots, ret_unknown);
}

size_t attribute_size(const struct rtattr *attribute)
{
	return attribute->rta_len - RTA_LENGTH(0);
}

int attribute_bytes(const struct rtattr *attribute, void *ret, size_t size)
{
	if (!attribute)
		return 0;
	if (attribute_size(attribute) != size)
		return -EBADMSG;
	memcpy(ret, RTA_DATA(attribute), size);
	return 0;
}

int attribute_u8(const struct rtattr *attribute, uint8_t *ret)
{
	return attribute_bytes(attribute, ret, sizeof(*ret));
}

int attribute_u32(const struct rtattr *attribute, uint32_t *ret)
{
	return attribute_bytes(attribute, ret, sizeof(*ret));
}

int attribute_ipv4(const struct rtattr *attribute, uint32_t *ret)
{
	uint32_t value;
	int r;

	if (!attribute)
		return 0;
	r = attribute_bytes(attribute, &value, sizeof(value));
	if (r < 0)
		return r;
	*ret = ntohl(value);
	return 0;
}

int attribute_name(const struct rtattr *attribute, char *ret, size_t size)
{
	size_t n;

	if (!attribute)
		return 0;
	n = attribute_size(attribute);
	if (n == 0 || n > size || memchr(RTA_DATA(attribute), 0, n) != (char *)RTA_DATA(attribute) + n - 1)
		return -EBADMSG;
	memcpy(ret, RTA_DATA(attribute), n);
	return 0;
}

const char *ipv4_to_text(uint32_t address, unsigned length, char buffer[static ADDRESS_TEXT_MAX])
{
	struct in_addr in = { .s_addr = htonl(address) };
	char text[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &in, text, sizeof(text));
	if (address == 0 && length == 0)
		snprintf(buffer, ADDRESS_TEXT_MAX, "default");
	else if (length == 32)
		snprintf(buffer, ADDRESS_TEXT_MAX, "%s", text);
	else
		snprintf(buffer, ADDRESS_TEXT_MAX, "%s/%u", text, length);
	return buffer;
}

const char *ipv6_to_text(const uint8_t address[static 16], unsigned length,
			 char buffer[static ADDRESS_TEXT_MAX])
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, address, text, sizeof(text));
	snprintf(buffer, ADDRESS_TEXT_MAX, "%s/%u", text, length);
	return buffer;
}
