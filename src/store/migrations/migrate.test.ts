import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { openedStore, SECRETS, temporaryFolder } from '../../../test/store-rows.ts'
import { openSqliteStore } from '../sqlite/open.ts'

const TABLES = ['holds', 'store_identity', 'tokens', 'usage_log', 'users']

// Sleeps after each statement, so that a kill at a random moment falls between two of them.
const SLOW_MIGRATION = `
  const [connection, dialect, migrate, types, path] = process.argv.slice(1)
  const { openForWriting } = await import(connection)
  const { kyselyOver } = await import(dialect)
  const { migrateToLatest } = await import(migrate)
  const { SQLITE_TYPES } = await import(types)
  const { writeSync } = await import('node:fs')
  const pause = new Int32Array(new SharedArrayBuffer(4))
  const db = kyselyOver(openForWriting(path), () => {
    writeSync(1, '.')
    Atomics.wait(pause, 0, 0, 5)
  })
  await migrateToLatest(db, SQLITE_TYPES)
  writeSync(1, 'done')
`

/** Migrates in another process, which is killed after so many milliseconds; returns what it said. */
async function migrateAndKill(path: string, afterMs: number): Promise<string> {
  const modules = ['../sqlite/connection.ts', '../sqlite/dialect.ts', './migrate.ts', './column-types.ts']
  const urls = modules.map((module) => new URL(module, import.meta.url).href)
  const child = spawn(process.execPath, ['--input-type=module', '-e', SLOW_MIGRATION, ...urls, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let said = ''
  child.stdout.setEncoding('latin1').on('data', (text: string) => {
    said += text
  })
  await once(child.stdout, 'data')
  setTimeout(() => child.kill('SIGKILL'), afterMs)
  await once(child, 'close')
  return said
}

function tablesOf(path: string): unknown[] {
  const db = new DatabaseSync(path)
  expect(db.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' })
  const rows = db
    .prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'kysely_%' ORDER BY name",
    )
    .all()
  db.close()
  return rows.map((row) => row['name'])
}

test('a migration killed at any moment leaves all of the schema or nothing of it, and the next start completes it', async () => {
  let interrupted = 0
  for (let round = 0; round < 12; round += 1) {
    const path = join(temporaryFolder(), 'sluice.db')
    const said = await migrateAndKill(path, Math.random() * 100)
    const tables = tablesOf(path)
    if (said.endsWith('done')) expect(tables).toEqual(TABLES)
    else {
      interrupted += 1
      expect([[], TABLES]).toContainEqual(tables)
    }
    const store = await openSqliteStore({ path, secret: SECRETS })
    expect(await store.read('countUsers')).toBe(0)
    await store.close()
    expect(tablesOf(path)).toEqual(TABLES)
  }
  expect(interrupted).toBeGreaterThan(3)
}, 60_000)

test('a second start changes nothing', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  for (let start = 0; start < 2; start += 1) await (await openSqliteStore({ path, secret: SECRETS })).close()
  const db = new DatabaseSync(path)
  expect(db.prepare('SELECT name FROM kysely_migration').all()).toEqual([
    { name: '0001-accounts-and-ledger' },
  ])
  db.close()
})

test('a database that a newer version has changed is refused, with a word on what to do', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  await (await openSqliteStore({ path, secret: SECRETS })).close()
  const db = new DatabaseSync(path)
  db.exec("INSERT INTO kysely_migration VALUES ('9999-from-the-future', '2030-01-01T00:00:00.000Z')")
  db.close()
  await expect(openSqliteStore({ path, secret: SECRETS })).rejects.toThrow(
    /newer version of sluice.*9999-from-the-future.*0001-accounts-and-ledger/,
  )
})

test('a file that is no database is refused', async () => {
  const { writeFileSync } = await import('node:fs')
  const path = join(temporaryFolder(), 'sluice.db')
  writeFileSync(path, 'this is a letter to my aunt '.repeat(100))
  await expect(openedStore(path)).rejects.toThrow(/not a database/)
})
