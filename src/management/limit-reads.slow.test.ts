import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { filled, idAt } from '../../test/stores/usage-log-rows.ts'
import { newToken, newUser, openedStore, storeWithAccount, temporaryFolder } from '../../test/stores/rows.ts'
import type { Settings } from '../domain/settings.ts'
import { RequestMemory } from '../limits/request-memory.ts'
import { StoreReads } from '../limits/store-reads.ts'
import type { Store } from '../store/store.ts'
import { storeWithReadLimits } from './limit-reads.ts'
import { auditCsv } from './audit-log.ts'
import { Calendar } from '../domain/calendar.ts'
import { usageCsv } from './usage/list-usage.ts'
import { tokenPage } from './tokens/list-tokens.ts'

const KIB = 1024
const MIB = 1024 * KIB
/** The share of a client while no other was recently active: 7 of 8 parts of 192 MiB. */
const SHARE = 168 * MIB
const nowMs = (): number => performance.now()
const settings = () => ({ groups: new Map() }) as unknown as Settings

/** A store as a request of user 1 reads it, and the reads with the memory that was held at that moment. */
function stageOf(store: Pick<Store, 'read' | 'write'>) {
  const memory = new RequestMemory(() => 32 * MIB, nowMs)
  const reads = new StoreReads(memory)
  const reading = reads.of(1)
  onTestFinished(() => reading.end())
  const done: { readonly name: string; readonly held: number }[] = []
  const rows: Pick<Store, 'read' | 'write'> = {
    read(name, ...input) {
      if (name !== 'readBytes') done.push({ name, held: memory.held })
      return store.read(name, ...input)
    },
    write: (name, ...input) => store.write(name, ...input),
  }
  const { store: metered, endReads } = storeWithReadLimits(rows, reading)
  return { memory, reads, reading, done, metered, endReads }
}

test('a page of the usage log waits for enough memory for its texts before it is read from the database', async () => {
  const store = await openedStore()
  const { memory, reads, reading, done, metered } = stageOf(store)
  const { id: userId } = await store.write('createUser', newUser())
  const token = (n: number) => newToken(userId, { key: `k${n}`, model_limits: 'm'.repeat(64 * KIB) })
  for (let n = 0; n < 10; n += 1) await store.write('createToken', token(n))
  const another = reads.of(1)
  await another.hold(SHARE - MIB)
  const page = tokenPage({ store: metered, settings, nowMs }, { user: userId, page: 1, pageSize: 10 })
  // The sizes of the rows are read in the meantime.
  await store.read('managedUser', { userId })
  await store.read('managedUser', { userId })
  expect(done).toEqual([])
  another.end()
  expect((await page).items).toHaveLength(10)
  expect(done[0]).toEqual({ name: 'findTokenPageWithKeys', held: expect.any(Number) })
  expect(done[0]?.held).toBeGreaterThan(6 * 10 * 64 * KIB)
  reading.end()
  expect(memory.held).toBe(0)
})

test('a request that ends its reads gives their memory back, and its next read takes it anew', async () => {
  const store = await openedStore()
  const { memory, metered, endReads } = stageOf(store)
  const read = async (): Promise<number> => {
    await metered.read('countUsers')
    return memory.held
  }
  const held = await read()
  expect(held).toBeGreaterThan(0)
  endReads()
  expect(memory.held).toBe(0)
  expect(await read()).toBe(held)
})

const NO_CONTENT = {
  find: () => Promise.resolve(new Map()),
  read: () => Promise.resolve(undefined),
  delete: () => Promise.resolve(false),
  bytesToRead: () => 0,
}

const CSV_FORMAT = { calendar: new Calendar('UTC'), usdOf: String }

test('an export of the usage log takes memory for 2,000 calls at a time, however many there are', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const { store } = await storeWithAccount(path)
  using database = new DatabaseSync(path)
  const calls = Array.from({ length: 4_500 }, (_, n) => ({ id: idAt(n), endedMs: n }))
  database.exec('BEGIN')
  await filled({ sql: (statement) => Promise.resolve(database.prepare(statement).all()) }, calls)
  database.exec('COMMIT')
  const { memory, metered, reading } = stageOf(store)
  const pieces: number[] = []
  const held = new Set<number>()
  for await (const piece of usageCsv(
    { store: metered, content: NO_CONTENT, settings: () => expect.unreachable(), nowMs: Date.now },
    {},
    ['id'],
    ({ id }) => ({ id }),
    CSV_FORMAT,
  )) {
    pieces.push(piece.split('\n').length - 1)
    held.add(memory.held)
  }
  // The first piece includes the header.
  expect(pieces).toEqual([2_001, 2_000, 500])
  expect([...held]).toEqual([6 * (2_048 + 16) * KIB])
  reading.end()
  expect(memory.held).toBe(0)
})

test('an export of the usage log takes memory for the texts of its calls, and does not read those that only a single call shows', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const { store } = await storeWithAccount(path)
  using database = new DatabaseSync(path)
  const calls = Array.from({ length: 20 }, (_, n) => ({ id: idAt(n), endedMs: n }))
  await filled({ sql: (statement) => Promise.resolve(database.prepare(statement).all()) }, calls)
  database.exec(`update usage_log set custom_id = '${'i'.repeat(200 * KIB)}',
    attempts = '[${' '.repeat(900 * KIB)}]', error = '{${' '.repeat(900 * KIB)}}'`)
  const { metered, done, memory } = stageOf(store)
  const { entries } = await metered.read('scanUsage', { filter: {}, after: null, maxRows: 2_000 })
  expect(entries.map(({ attempts, error }) => [attempts, error])).toEqual(calls.map(() => [null, null]))
  expect(done.map(({ name }) => name)).toEqual(['scanUsage'])
  expect(memory.held).toBeGreaterThanOrEqual(6 * 20 * 200 * KIB)
  expect(memory.held).toBeLessThan(6 * 20 * 300 * KIB)
  const detail = await metered.read('callDetail', { id: idAt(3) })
  expect(detail?.attempts).toEqual([])
})

test('an export of the audit log takes memory for 500 changes at a time, however many there are', async () => {
  const path = join(temporaryFolder(), 'sluice.db')
  const { store } = await storeWithAccount(path)
  using database = new DatabaseSync(path)
  const text = JSON.stringify([{ field: 'remark', before: '', after: 'x'.repeat(4 * KIB) }])
  const columns = 'at_ms, actor_id, actor, via, address, action, object_kind, object_name, changes'
  database.exec(`insert into audit_log (${columns})
    with recursive n(i) as (select 1 union all select i + 1 from n where i < 1200)
    select i, 1, 'root', 'api', '', 'user.update', 'user', 'ann', '${text}' from n`)
  const { memory, metered, reading, done } = stageOf(store)
  const pieces: number[] = []
  for await (const piece of auditCsv({ store: metered }, { kind: 'user' }))
    pieces.push(piece.split('\n').length - 1)
  // The first piece includes the header.
  expect(pieces).toEqual([501, 500, 200])
  const held = done.map((read) => read.held)
  expect(held[0]).toBeGreaterThan(6 * 500 * text.length)
  // The other columns of a row take less than a hundred bytes.
  expect(Math.max(...held)).toBeLessThan(6 * (500 * (text.length + 100) + 16 * KIB))
  reading.end()
  expect(memory.held).toBe(0)
})
