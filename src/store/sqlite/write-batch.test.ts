import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { holdOf, newToken, newUser, SECRETS, settledCall, temporaryFolder } from '../../../test/store-rows.ts'
import { openForWriting } from './connection.ts'
import { putTogether } from './failure.ts'
import type { BatchReply, QueuedOperation } from './messages.ts'
import { prepareDatabase } from './prepare-database.ts'
import { WriteBatches } from './write-batch.ts'

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
  return putTogether(reply.failure)
}

test('a full disk refuses the whole batch, leaves nothing of it, and the next batch is taken once there is room', async () => {
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
  // What the refused settlement would have moved was not kept for the next commit.
  expect(db.prepare('SELECT used_quota FROM tokens').get()).toEqual({ used_quota: 0 })
  await batches.write([['settle', settledCall(WHO, 'b')]])
  expect(db.prepare('SELECT requests, quota FROM usage_days').all()).toEqual([{ requests: 1, quota: 300 }])
  db.close()
})

test('a commit that fails refuses the whole batch, and the next batch is taken', async () => {
  const { db, batches } = await writerOf(join(temporaryFolder(), 'sluice.db'))
  // Until the next commit, a row that names no token is found at that commit and not before.
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
