import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import {
  holdOf,
  newToken,
  newUser,
  SECRETS,
  settledCall,
  temporaryFolder,
} from '../../../test/stores/rows.ts'
import { openForWriting } from './connection.ts'
import { deserializeError } from './failure.ts'
import { type BatchReply, type QueuedOperation, SUM_UP_OPERATION } from './messages.ts'
import { prepareDatabase } from './prepare-database.ts'
import { WriteBatches } from './write-batch.ts'
import { kindIs } from '../../../test/stores/usage-sums-rows.ts'

const WHO = { userId: 1, tokenId: 1 }

async function writerOf(path: string): Promise<{ db: DatabaseSync; batches: WriteBatches }> {
  const db = openForWriting(path)
  await prepareDatabase(db, SECRETS)
  const batches = new WriteBatches(db, SECRETS)
  const made = await batches.write([
    ['createUser', newUser()],
    ['createToken', newToken(1)],
  ])
  expect(made.kind).toBe('done')
  return { db, batches }
}

function holds(from: number, count: number): QueuedOperation[] {
  return Array.from({ length: count }, (_, index) => ['hold', holdOf(WHO, `id-${from + index}`)])
}

function errorOf(reply: BatchReply): Error {
  if (reply.kind !== 'failed') throw new Error('the batch did not fail')
  return deserializeError(reply.failure)
}

test('on a full disk a whole batch of writes is refused, and the next batch is written once there is space', async () => {
  const { db, batches } = await writerOf(join(temporaryFolder(), 'sluice.db'))
  const { page_count: pages } = db.prepare('PRAGMA page_count').get() as { page_count: number }
  db.exec(`PRAGMA max_page_count = ${pages + 4}`)
  const reply = await batches.write([['settle', settledCall(WHO, 'a')], ...holds(0, 500)])
  const error = errorOf(reply)
  expect(error.name).toBe('StoreUnavailable')
  expect(error.message).toMatch(/no room/)
  expect((error.cause as { sqliteCode?: number }).sqliteCode).toBe(13)
  const count = db.prepare('SELECT (SELECT count(*) FROM holds) + (SELECT count(*) FROM usage_log) AS n')
  expect(count.get()).toEqual({ n: 0 })

  db.exec('PRAGMA max_page_count = 1000000')
  expect((await batches.write(holds(0, 500))).kind).toBe('done')
  expect(count.get()).toEqual({ n: 500 })
  // Sums of the refused settlement are not part of the next commit.
  expect(db.prepare('SELECT used_quota FROM tokens').get()).toEqual({ used_quota: 0 })
  await batches.write([
    ['settle', settledCall(WHO, 'b')],
    [SUM_UP_OPERATION, undefined],
  ])
  expect(db.prepare(`SELECT requests, quota FROM usage_sums WHERE ${kindIs('days')}`).all()).toEqual([
    { requests: 1, quota: 300 },
  ])
  db.close()
})

test('a failed commit refuses its whole batch of writes, and the next batch is written', async () => {
  const { db, batches } = await writerOf(join(temporaryFolder(), 'sluice.db'))
  // Defers foreign keys, so that a row with an unknown token fails only at the commit.
  db.exec('PRAGMA defer_foreign_keys = ON')
  const reply = await batches.write([
    ['settle', settledCall(WHO, 'a')],
    ['settle', settledCall({ userId: 1, tokenId: 77 }, 'b')],
  ])
  expect(errorOf(reply)).toMatchObject({ name: 'StoreUnavailable', message: 'the commit failed' })
  expect((await batches.write([['settle', settledCall(WHO, 'c')]])).kind).toBe('done')
  expect(db.prepare('SELECT id FROM usage_log').all()).toEqual([{ id: 'c' }])
  expect(db.prepare('SELECT used_quota FROM tokens').get()).toEqual({ used_quota: 300 })
  db.close()
})

test('a call whose hold and settlement share a batch of database writes is charged, and leaves no hold', async () => {
  const { db, batches } = await writerOf(join(temporaryFolder(), 'sluice.db'))
  const reply = await batches.write([
    ...holds(0, 3),
    ['settle', settledCall(WHO, 'id-1')],
    ['growHold', { id: 'id-2', userId: 1, by: 50 }],
    ['settle', settledCall(WHO, 'id-0')],
  ])
  expect(reply.kind).toBe('done')
  expect(db.prepare('SELECT id, amount FROM holds').all()).toEqual([
    { id: 'id-2', amount: holdOf(WHO, 'id-2').amount + 50 },
  ])
  expect(db.prepare('SELECT id FROM usage_log ORDER BY id').all()).toEqual([{ id: 'id-0' }, { id: 'id-1' }])
  expect(db.prepare('SELECT used_quota FROM tokens').get()).toEqual({ used_quota: 600 })
  db.close()
})

test('a refused settlement leaves the hold of its call open, even if the hold was opened in the same batch of writes', async () => {
  const { db, batches } = await writerOf(join(temporaryFolder(), 'sluice.db'))
  const reply = await batches.write([
    ...holds(0, 2),
    ['settle', settledCall(WHO, 'id-0', { quota: Symbol('no number') as never })],
    ['settle', settledCall(WHO, 'id-1')],
  ])
  expect(reply).toMatchObject({ kind: 'done', outcomes: [undefined, undefined, {}, undefined] })
  expect(db.prepare('SELECT id, amount FROM holds').all()).toEqual([
    { id: 'id-0', amount: holdOf(WHO, 'id-0').amount },
  ])
  expect(db.prepare('SELECT used_quota FROM tokens').get()).toEqual({ used_quota: 300 })
  db.close()
})

test('a second hold with the same id is refused, and neither remains once the call is settled', async () => {
  const { db, batches } = await writerOf(join(temporaryFolder(), 'sluice.db'))
  const reply = await batches.write([...holds(0, 1), ...holds(0, 1), ['settle', settledCall(WHO, 'id-0')]])
  expect(reply).toMatchObject({ kind: 'done', outcomes: [undefined, {}, undefined] })
  expect(db.prepare('SELECT id FROM holds').all()).toEqual([])
  db.close()
})

test('a read in the middle of a batch of writes counts the holds that the batch has opened and not yet settled', async () => {
  const { db, batches } = await writerOf(join(temporaryFolder(), 'sluice.db'))
  const { amount } = holdOf(WHO, 'id-0')
  const reply = await batches.write([
    ...holds(0, 1),
    ['loadAccount', { tokenId: 1 }],
    ['settle', settledCall(WHO, 'id-0')],
    ['loadAccount', { tokenId: 1 }],
  ])
  if (reply.kind !== 'done') throw new Error('the batch failed')
  const [, before, , after] = reply.outcomes as { value: { openHolds: unknown } }[]
  expect(before?.value.openHolds).toEqual({ token: amount, user: amount })
  expect(after?.value.openHolds).toEqual({ token: 0, user: 0 })
  db.close()
})

test('a hold and a settlement in a batch that are both refused do not affect the other writes of the batch', async () => {
  const { db, batches } = await writerOf(join(temporaryFolder(), 'sluice.db'))
  const nobody = { userId: 1, tokenId: 77 }
  const reply = await batches.write([
    ['hold', holdOf(nobody, 'x')],
    ['settle', settledCall(nobody, 'x')],
    ['hold', holdOf(WHO, 'with NUL', { model: 'a\0b' })],
    ['settle', settledCall(WHO, 'a')],
  ])
  if (reply.kind !== 'done') throw new Error('the batch failed')
  expect(reply.outcomes.map((outcome) => outcome !== undefined)).toEqual([false, true, true, false])
  expect(db.prepare('SELECT id FROM holds').all()).toEqual([])
  expect(db.prepare('SELECT id FROM usage_log').all()).toEqual([{ id: 'a' }])
  db.close()
})
