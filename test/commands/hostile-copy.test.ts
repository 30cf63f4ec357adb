import { copyFileSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { type Outcome, sluice } from '../fixtures/command.ts'
import { type Filling, filledFolder, SECRET } from '../stores/filled-store.ts'
import { ENGINES } from '../stores/engines.ts'
import { embeddedRows } from './embedded-rows.ts'

const FEW: Filling = { users: 2, tokensEach: 1, charges: [100, 250], openHolds: 1 }
const ENV = { GATEWAY_SECRET: SECRET }

function run(folder: string, ...args: string[]): Promise<Outcome> {
  return sluice(args, { DATA_DIR: folder, ...ENV })
}

async function tampered(...statements: readonly string[]): Promise<string> {
  const folder = await filledFolder(FEW)
  const db = new DatabaseSync(join(folder, 'sluice.db'))
  for (const statement of statements) db.exec(statement)
  db.close()
  return folder
}

const ENDLESS = 'with recursive n(x) as (select 1 union all select x + 1 from n)'

describe.each(ENGINES.filter(({ name }) => name === 'PostgreSQL'))('sluice migrate, to $name', (engine) => {
  test.each([
    [
      'a trigger',
      'trigger "planted"',
      ['create trigger planted after insert on usage_log begin update users set quota = 999; end'],
    ],
    [
      'a trigger in the place of one of its own',
      'trigger "alert_quota_low"',
      [
        'drop trigger alert_quota_low',
        'create trigger alert_quota_low after update of quota on users begin update users set role = 100; end',
      ],
    ],
    [
      'a view in the place of a table',
      'view "sessions"',
      ['drop table sessions', `create view sessions as ${ENDLESS} select cast(x as text) as id_hash from n`],
    ],
    ['a computed column', 'table "more"', ['create table more (a text, b as (hex(zeroblob(1000000000))))']],
    ['a virtual table', 'table "more"', ['create virtual table more using fts5(a)']],
  ])('sluice migrate refuses a database with %s, before it writes anything', async (_, named, statements) => {
    const folder = await tampered(...statements)
    const before = readFileSync(join(folder, 'sluice.db'))
    const database = await engine.database()
    for (const more of [[], ['--dry-run']]) {
      const { code, err } = await run(folder, 'migrate', '--to', database.place, ...more)
      expect([code, err]).toEqual([
        1,
        `sluice: the database has a ${named} that Sluice did not make: remove it, or copy a backup from before it\n`,
      ])
    }
    expect(readFileSync(join(folder, 'sluice.db'))).toEqual(before)
    expect(
      await database.sql("select 1 from information_schema.tables where table_schema = 'public'"),
    ).toEqual([])
  })

  test.each([
    [
      'a text that is not UTF-8',
      "update users set remark = cast(x'61ff' as text) where id = 2",
      'users.remark: a text is not UTF-8, in the row [2]',
    ],
    ['an id above 2^53', 'update users set id = 9007199254740993 where id = 2', 'Value is too large'],
    ['a NUL', "update users set remark = 'a' || char(0) where id = 2", 'NUL'],
    ['a token without a user', 'update tokens set user_id = 77 where id = 1', 'tokens_user_id_fkey'],
  ])('sluice migrate ends with a message if the source contains %s', async (_, statement, sentence) => {
    const folder = await tampered('pragma foreign_keys = off', statement)
    const database = await engine.database()
    const { code, err } = await run(folder, 'migrate', '--to', database.place)
    expect([code, err]).toEqual([1, expect.stringContaining(sentence)])
  })

  test('sluice migrate copies U+FFFD in a text unchanged', async () => {
    const folder = await tampered("update users set remark = 'a\uFFFDb' where id = 2")
    const database = await engine.database()
    expect(await run(folder, 'migrate', '--to', database.place)).toMatchObject({ code: 0, err: '' })
    expect(await database.sql('select remark from users where id = 2')).toEqual([{ remark: 'a\uFFFDb' }])
  })
})

describe('a copy that is restored', () => {
  /** A folder whose database was not closed, and a copy from before its last writes. */
  async function unclosed(): Promise<{ folder: string; copy: string }> {
    const folder = await filledFolder(FEW)
    const copy = join(folder, 'copy.db')
    expect(await run(folder, 'backup', copy)).toMatchObject({ code: 0 })
    const path = join(folder, 'sluice.db')
    const db = new DatabaseSync(path)
    db.exec('pragma journal_mode = wal')
    db.exec("update users set remark = 'later'")
    copyFileSync(`${path}-wal`, join(folder, 'kept-wal'))
    db.close()
    copyFileSync(join(folder, 'kept-wal'), `${path}-wal`)
    return { folder, copy }
  }

  test('a restored backup next to the write-ahead log of the former database is refused, and not damaged', async () => {
    const { folder, copy } = await unclosed()
    const path = join(folder, 'sluice.db')
    copyFileSync(copy, path)
    for (const args of [
      ['user', 'list'],
      ['backup', join(folder, 'again.db')],
    ])
      expect(await run(folder, ...args), args[0]).toMatchObject({
        code: 1,
        err: expect.stringContaining(
          `${path}-wal belongs to the database that was at ${path} before: remove it`,
        ),
      })
    expect(readFileSync(path)).toEqual(readFileSync(copy))
    expect(existsSync(`${path}-wal`)).toBe(true)
  })

  test('a restored backup can be opened once the write-ahead log of the former database is removed', async () => {
    const { folder, copy } = await unclosed()
    copyFileSync(copy, join(folder, 'sluice.db'))
    rmSync(join(folder, 'sluice.db-wal'))
    expect(await run(folder, 'user', 'list')).toMatchObject({ code: 0, err: '' })
    expect(embeddedRows(folder, "select 1 from users where remark = 'later'")).toEqual([])
  })

  test('a database that was not closed properly is not mistaken for a restored backup', async () => {
    const { folder } = await unclosed()
    expect(await run(folder, 'user', 'list')).toMatchObject({ code: 0, err: '' })
  })
})
