// SPDX-License-Identifier: GPL-2.0
/*
 * The messages of an app: an SQLite database, as a phone's SMS app keeps. No
 * process writes to it, and the phone's kernel has no file locks: it is immutable.
 */
#include <sqlite3.h>
#include <stdio.h>

#include "apps/messages.h"
#include "base/records.h"

static sqlite3 *db;

static void query(const char *sql)
{
	sqlite3_stmt *stmt;
	int err = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	while (!err && sqlite3_step(stmt) == SQLITE_ROW)
		;
	if (err || sqlite3_finalize(stmt))
		fatal("messages: %s", sqlite3_errmsg(db));
}

/* The conversations, the newest messages of one, and a search through all. */
void messages_show(const struct profile *p)
{
	char path[96];

	if (!p->messages)
		return;
	snprintf(path, sizeof(path), "file:/data/app/%s/messages?immutable=1", p->name);
	if (!db && sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL))
		fatal("%s: %s", path, sqlite3_errmsg(db));
	query("SELECT thread, max(date), count(*) FROM message GROUP BY thread");
	query("SELECT body FROM message WHERE thread = 7 ORDER BY date DESC LIMIT 50");
	query("SELECT id FROM message WHERE body LIKE '%tomorrow%'");
}
