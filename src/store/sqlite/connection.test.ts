import { existsSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../../test/stores/rows.ts'
import { openForReading, openForWriting } from './connection.ts'

test('a SQLite commit is on the disk when it returns: the write-ahead log is synced with every commit', () => {
  const db = openForWriting(join(temporaryFolder(), 'sluice.db'))
  expect(db.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' })
  const FULL = 2
  expect(db.prepare('PRAGMA synchronous').get()).toEqual({ synchronous: FULL })
  db.close()
})

test('a SQLite file that others can read is restricted to its owner, and a symbolic link in its place is refused', () => {
  const folder = temporaryFolder()
  const path = join(folder, 'sluice.db')
  writeFileSync(path, '', { mode: 0o644 })
  openForWriting(path).close()
  expect(statSync(path).mode & 0o777).toBe(0o600)
  for (const name of ['sluice.db-wal', 'sluice.db']) {
    rmSync(join(folder, name), { force: true })
    symlinkSync(join(folder, 'elsewhere'), join(folder, name))
    expect(() => openForWriting(path)).toThrow(`${join(folder, name)} is a link`)
  }
  expect(existsSync(join(folder, 'elsewhere'))).toBe(false)
})

test('a new SQLite file is accessible to its owner only, and a connection for reading cannot write', () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const writer = openForWriting(path)
  writer.exec('CREATE TABLE t (a)')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  const reader = openForReading(path)
  expect(() => reader.exec('INSERT INTO t VALUES (1)')).toThrow('readonly')
  reader.close()
  writer.close()
})
