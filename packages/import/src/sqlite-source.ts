import { closeSync, existsSync, openSync, readSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { MAX_TABLES, notATableError, READ_LIMITS, ReadMeter } from './read-limits.ts'
import type { SourceDatabase } from './source.ts'
import { refuseHugeSchema } from './sqlite-schema.ts'

/** Offset of the write version in the header of a SQLite file; 2 means WAL mode. */
const WRITE_VERSION_OFFSET = 18
const WAL_VERSION = 2

/**
 * Opens the SQLite file of another gateway, which may be running. The file is not trusted: only plain tables
 * are read, within `limits`. Throws with a sentence for the operator, in which `shown` names the file.
 */
export function openSqliteSource(path: string, limits = READ_LIMITS, shown = path): SourceDatabase {
  const db = withReadErrors(shown, () => {
    refuseHugeSchema(path)
    const opened = new DatabaseSync(locationOf(path), { readOnly: true, timeout: 5000 })
    opened.exec('PRAGMA trusted_schema = OFF')
    opened.exec('PRAGMA query_only = ON')
    opened.exec('BEGIN')
    opened.prepare('SELECT count(*) FROM sqlite_schema').get()
    return opened
  })
  const read = new ReadMeter(limits)
  return {
    async columnsOf(table) {
      const [found] = db.prepare("SELECT type FROM pragma_table_list(?) WHERE schema = 'main'").all(table)
      if (found && found['type'] !== 'table') throw notATableError(table, kindOf(String(found['type'])))
      const rows = db.prepare('SELECT name FROM pragma_table_info(?)').all(table)
      return rows.map((row) => String(row['name']))
    },
    async rows(table, columns) {
      const names = columns.map(quoted)
      // Lengths are read before values, so that a row that is too large is refused before it is loaded into
      // memory. They are not read from an index, which may contain other ones.
      const bytes = names.map((name) => `coalesce(octet_length(${name}), 0)`).join(' + ')
      const sizes = db.prepare(`SELECT ${bytes} AS bytes FROM ${quoted(table)} NOT INDEXED`)
      const statement = db.prepare(
        `SELECT ${names.join(', ')} FROM ${quoted(table)} NOT INDEXED${columns.includes('id') ? ' ORDER BY id' : ''}`,
      )
      statement.setReadBigInts(true)
      return withReadErrors(shown, () => {
        const count = read.table(table)
        for (const row of sizes.iterate()) count(Number(row['bytes']))
        return statement.all()
      })
    },
    async tables() {
      const found = db
        .prepare(
          "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name LIMIT ?",
        )
        .all(MAX_TABLES)
      return found.map(({ name }) => String(name))
    },
    async countRows(table, max) {
      const counting = `SELECT count(*) AS number FROM (SELECT 1 FROM ${quoted(table)} LIMIT ?)`
      return withReadErrors(shown, () => Number(db.prepare(counting).get(max + 1)?.['number']))
    },
    close() {
      db.close()
      return Promise.resolve()
    },
  }
}

// Opening a file in WAL mode creates a WAL file beside it, unless the file is opened as immutable. That is
// safe only if no WAL file exists.
function locationOf(path: string): string {
  if (!isWriteAhead(path) || existsSync(`${path}-wal`)) return path
  return `${pathToFileURL(path).href}?immutable=1`
}

function isWriteAhead(path: string): boolean {
  const start = Buffer.alloc(WRITE_VERSION_OFFSET + 2)
  const file = openSync(path, 'r')
  try {
    return (
      readSync(file, start, 0, start.length, 0) === start.length &&
      start[WRITE_VERSION_OFFSET] === WAL_VERSION
    )
  } finally {
    closeSync(file)
  }
}

function withReadErrors<Result>(shown: string, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(
      `${shown} cannot be read as a SQLite database (${reason}): stop the gateway that it belongs to, and name its file`,
      { cause: error },
    )
  }
}

function kindOf(type: string): string {
  return type === 'view' ? type : `${type} table`
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
