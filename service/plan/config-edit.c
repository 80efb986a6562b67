/* SPDX-License-Identifier: MIT */
#include "service/plan/config-edit.h"

#include "service/plan/config-values.h"

/* Between a value and its comment where no other line shows a column. */
#define GAP "  "

typedef struct Buffer {
	char *data;
	size_t size;
} Buffer;

/* One line: its bytes without the end, and the end ("\n", "\r\n" or nothing at the end of the file). */
typedef struct Line {
	const char *text;
	size_t size, end_size;
} Line;

static void buffer_done(Buffer *buffer)
{
	free(buffer->data);
}

static int buffer_add(Buffer *buffer, const char *bytes, size_t n)
{
	char *grown = realloc(buffer->data, buffer->size + n + 1);

	if (!grown)
		return -ENOMEM;
	memcpy(grown + buffer->size, bytes, n);
	buffer->data = grown;
	buffer->size += n;
	grown[buffer->size] = '\0';
	return 0;
}

static int buffer_add_text(Buffer *buffer, const char *text)
{
	return buffer_add(buffer, text, strlen(text));
}

static bool line_next(const char *text, size_t size, size_t *offset, Line *ret)
{
	const char *line = text + *offset, *end;

	if (*offset >= size)
		return false;
	end = memchr(line, '\n', size - *offset);
	*ret = (Line){ .text = line,
		       .size = end ? (size_t)(end - line) : size - *offset,
		       .end_size = end ? 1 : 0 };
	*offset += ret->size + ret->end_size;
	if (ret->size > 0 && line[ret->size - 1] == '\r') {
		ret->size--;
		ret->end_size++;
	}
	return true;
}

/* Where the comment's '#' stands, as config.c sees it; the line's size for none. */
static size_t comment_at(const Line *line)
{
	for (size_t i = 0; i < line->size; i++)
		if (line->text[i] == '#' && (i == 0 || line->text[i - 1] == ' ' || line->text[i - 1] == '\t'))
			return i;
	return line->size;
}

/* The end of what stands before the comment, without the white space between. */
static size_t setting_end(const Line *line)
{
	size_t n = comment_at(line);

	while (n > 0 && (line->text[n - 1] == ' ' || line->text[n - 1] == '\t'))
		n--;
	return n;
}

/* The allow-ip that the line sets, by the parser of the whole; there is one at most. "" for none. */
static int line_address(const char *path, const Line *line, char **ret)
{
	_cleanup_(config_done) Config config = CONFIG_INIT;
	const ConfigValue *value;
	size_t index = 0;
	int r;

	r = config_parse(path, line->text, line->size, &config, NULL);
	if (r < 0)
		return r;
	value = config_next(&config, CONFIG_ALLOW_IP, &index);
	*ret = strdup(value ? value->text : "");
	return *ret ? 0 : -ENOMEM;
}

int config_check_comment(const char *comment, char **ret_problem)
{
	_cleanup_free_ char *shown = config_display(comment);
	size_t n = strlen(comment);

	if (!shown)
		return -ENOMEM;
	if (n > CONFIG_EDIT_COMMENT_MAX)
		return refuse(ret_problem, -EINVAL, "the comment is longer than %u bytes; shorten it",
			      CONFIG_EDIT_COMMENT_MAX);
	if (!streq(shown, comment))
		return refuse(
			ret_problem, -EINVAL,
			"the comment has control characters or is not UTF-8 ('%s'); write plain text of "
			"one line",
			shown);
	if (n > 0 && (strchr(" \t", comment[0]) || strchr(" \t", comment[n - 1])))
		return refuse(ret_problem, -EINVAL, "the comment begins or ends with a space; remove it");
	return 0;
}

/* Every other value is what it was, in its order; of allow-ip only address may have come or gone. */
static bool is_other_kept(const Config *a, const Config *b, const char *address)
{
	size_t i = 0, j = 0;

	for (;;) {
		while (i < a->n_values && a->values[i].key == CONFIG_ALLOW_IP &&
		       streq(a->values[i].text, address))
			i++;
		while (j < b->n_values && b->values[j].key == CONFIG_ALLOW_IP &&
		       streq(b->values[j].text, address))
			j++;
		if (i == a->n_values || j == b->n_values)
			return i == a->n_values && j == b->n_values;
		if (a->values[i].key != b->values[j].key || !streq(a->values[i].text, b->values[j].text) ||
		    !streq(a->values[i].comment, b->values[j].comment))
			return false;
		i++;
		j++;
	}
}

/* What was written is read again before anybody relies on it. comment: NULL when address is to be gone. */
static int check_result(const char *path, const Config *before, const Buffer *buffer, const char *address,
			const char *comment, char **ret_problem)
{
	_cleanup_(config_done) Config after = CONFIG_INIT;
	const ConfigValue *value;
	int r;

	r = config_parse(path, buffer->data ?: "", buffer->size, &after, ret_problem);
	if (r < 0)
		return r;
	value = config_find(&after, CONFIG_ALLOW_IP, address);
	if (!value == !comment && (!value || streq(value->comment, comment)) &&
	    is_other_kept(before, &after, address))
		return 0;
	return refuse(ret_problem, -EINVAL,
		      "%s: is written in a way that cannot be edited here; change the line of %s by hand",
		      path, address);
}

typedef struct Edit {
	const char *path, *text;
	size_t size;
	Config before;
	char *address; /* canonical */
	Buffer out;
} Edit;

static void edit_done(Edit *edit)
{
	config_done(&edit->before);
	free(edit->address);
	buffer_done(&edit->out);
}

static int edit_init(Edit *edit, const char *path, const char *text, size_t size, const char *address,
		     char **ret_problem)
{
	int r;

	*edit = (Edit){ .path = path, .text = text, .size = size, .before = CONFIG_INIT };
	r = config_value_parse(CONFIG_ALLOW_IP, address, &edit->address, ret_problem);
	return r < 0 ? r : config_parse(path, text, size, &edit->before, ret_problem);
}

/* The end that lines of this file have. */
static const char *line_end(const Edit *edit)
{
	size_t offset = 0;
	Line line;

	return line_next(edit->text, edit->size, &offset, &line) && line.end_size == 2 ? "\r\n" : "\n";
}

/* "allow-ip = ADDRESS", and the comment in the column of the like line, where there is one and it has one. */
static int add_line(Edit *edit, const char *comment, const Line *like)
{
	size_t column = like ? comment_at(like) : 0, n = strlen(config_key_name(CONFIG_ALLOW_IP)) + 3;
	int r;

	r = buffer_add_text(&edit->out, config_key_name(CONFIG_ALLOW_IP));
	if (r == 0)
		r = buffer_add_text(&edit->out, " = ");
	if (r == 0)
		r = buffer_add_text(&edit->out, edit->address);
	n += strlen(edit->address);
	if (r < 0 || !*comment)
		return r;
	if (!like || column == like->size || column <= n || memchr(like->text, '\t', column))
		r = buffer_add_text(&edit->out, GAP);
	else
		for (; r == 0 && n < column; n++)
			r = buffer_add_text(&edit->out, " ");
	if (r == 0)
		r = buffer_add_text(&edit->out, "# ");
	return r < 0 ? r : buffer_add_text(&edit->out, comment);
}

static int insert_line(Edit *edit, const char *comment)
{
	size_t offset = 0, after = 0;
	Line line, last = { 0 };
	bool any = false;
	int r = 0;

	while (r == 0 && line_next(edit->text, edit->size, &offset, &line)) {
		_cleanup_free_ char *address = NULL;

		r = line_address(edit->path, &line, &address);
		if (r == 0 && (*address || !any)) {
			any |= *address != '\0';
			last = line;
			after = offset;
		}
	}
	if (r == 0)
		r = buffer_add(&edit->out, edit->text, after);
	/* A last line without an end gets one, and the new one none. */
	if (r == 0 && after > 0 && last.end_size == 0)
		r = buffer_add_text(&edit->out, line_end(edit));
	if (r == 0)
		r = add_line(edit, comment, any ? &last : NULL);
	if (r == 0 && (after == 0 || last.end_size > 0))
		r = buffer_add_text(&edit->out, line_end(edit));
	return r < 0 ? r : buffer_add(&edit->out, edit->text + after, edit->size - after);
}

/* The line as it is, with another comment. */
static int copy_with_comment(Edit *edit, const Line *line, const char *comment)
{
	size_t hash = comment_at(line), kept = hash, end = setting_end(line);
	int r;

	if (!*comment)
		return buffer_add(&edit->out, line->text, end);
	if (hash == line->size) {
		r = buffer_add(&edit->out, line->text, end);
		return r < 0 ? r : buffer_add_text(&edit->out, GAP "# ") ?: buffer_add_text(&edit->out, comment);
	}
	for (kept++; kept < line->size && (line->text[kept] == ' ' || line->text[kept] == '\t'); kept++)
		;
	/* A comment that was empty, or stood close to its '#', stays as close. */
	r = buffer_add(&edit->out, line->text, kept);
	return r < 0 ? r : buffer_add_text(&edit->out, comment);
}

/* Without the whole line; the last one, where it has no end, takes the end before it along. */
static void drop_line(Edit *edit, const Line *line)
{
	if (line->end_size > 0 || edit->out.size == 0)
		return;
	edit->out.size--;
	if (edit->out.size > 0 && edit->out.data[edit->out.size - 1] == '\r')
		edit->out.size--;
	edit->out.data[edit->out.size] = '\0';
}

/* comment: of an address that stays; NULL: it is taken out. */
static int rewrite(Edit *edit, const char *comment)
{
	size_t offset = 0;
	Line line;
	int r = 0;

	while (r == 0 && line_next(edit->text, edit->size, &offset, &line)) {
		_cleanup_free_ char *address = NULL;
		bool has;

		r = line_address(edit->path, &line, &address);
		if (r < 0)
			break;
		has = streq(address, edit->address);
		if (has && !comment) {
			drop_line(edit, &line);
			continue;
		}
		r = has ? copy_with_comment(edit, &line, comment)
			: buffer_add(&edit->out, line.text, line.size);
		if (r == 0)
			r = buffer_add(&edit->out, line.text + line.size, line.end_size);
	}
	return r;
}

static int edit_finish(Edit *edit, const char *comment, char **ret_text, size_t *ret_size, char **ret_problem)
{
	int r;

	if (!edit->out.data && buffer_add(&edit->out, "", 0) < 0)
		return -ENOMEM;
	r = check_result(edit->path, &edit->before, &edit->out, edit->address, comment, ret_problem);
	if (r < 0)
		return r;
	*ret_size = edit->out.size;
	*ret_text = TAKE_PTR(edit->out.data);
	return 0;
}

int config_edit_add(const char *path, const char *text, size_t size, const char *address, const char *comment,
		    char **ret_text, size_t *ret_size, char **ret_problem)
{
	_cleanup_(edit_done) Edit edit = { 0 };
	const ConfigValue *known;
	int r;

	r = edit_init(&edit, path, text, size, address, ret_problem);
	if (r == 0)
		r = config_check_comment(comment, ret_problem);
	if (r < 0)
		return r;
	known = config_find(&edit.before, CONFIG_ALLOW_IP, edit.address);
	if (known && streq(known->comment, comment))
		return -EALREADY;
	r = known ? rewrite(&edit, comment) : insert_line(&edit, comment);
	return r < 0 ? r : edit_finish(&edit, comment, ret_text, ret_size, ret_problem);
}

int config_edit_remove(const char *path, const char *text, size_t size, const char *address, char **ret_text,
		       size_t *ret_size, char **ret_problem)
{
	_cleanup_(edit_done) Edit edit = { 0 };
	int r;

	r = edit_init(&edit, path, text, size, address, ret_problem);
	if (r < 0)
		return r;
	if (!config_find(&edit.before, CONFIG_ALLOW_IP, edit.address))
		return refuse(ret_problem, -ENOENT,
			      "%s: no allow-ip is %s; 'claude-sandbox allow-ip' lists what is there", path,
			      edit.address);
	r = rewrite(&edit, NULL);
	return r < 0 ? r : edit_finish(&edit, NULL, ret_text, ret_size, ret_problem);
}
