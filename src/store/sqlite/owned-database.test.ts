import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import {
  addAccount,
  holdOf,
  newToken,
  newUser,
  preparedFile,
  SECRETS,
  settledCall,
} from '../../../test/stores/rows.ts'
import type { AccountName, AccountState, BankStatement, LoanResponse } from '../bank.ts'
import type { ParkedHold } from '../../domain/records/usage.ts'
import type { QueuedOperation } from './messages.ts'
import { type BankRequest, openOwnedDatabase, type OwnedDatabase } from './owned-database.ts'
import { packBatch } from './packed-batch.ts'

/** A database with the user u:1 (1,000,000 units) and the token t:1 (500,000). */
async function opened(): Promise<{ database: OwnedDatabase; path: string; announced: string[] }> {
  const path = await preparedFile()
  const announced: string[] = []
  const database = await openOwnedDatabase({
    path,
    secrets: SECRETS,
    announce: (account, epoch) => announced.push(`${account} ${epoch}`),
  })
  onTestFinished(() => database.close())
  await addAccount(database.store)
  return { database, path, announced }
}

const WHO = { userId: 1, tokenId: 1 }

async function lent(
  { database }: { database: OwnedDatabase },
  client: string,
  need: number,
): Promise<LoanResponse> {
  const request: BankRequest = [
    'acquire',
    [{ token: 1, need: { token: need, user: need }, max: { token: need, user: need } }],
  ]
  const [loan] = (await database.bank(client, request)) as LoanResponse[]
  if (!loan) throw new Error('no loan')
  return loan
}

async function state(database: OwnedDatabase, client: string, account: AccountName): Promise<AccountState> {
  const { states } = (await database.bank(client, [
    'apply',
    [JSON.stringify([account])],
    [],
  ])) as BankStatement
  return states[0] as AccountState
}

const write = (database: OwnedDatabase, client: string, ...operations: QueuedOperation[]) =>
  database.write(client, packBatch(operations))

test('a charge is taken from the quota lease of the worker that settles the call, and the worker is told the amount once', async () => {
  const { database } = await opened()
  expect((await lent({ database }, 'a', 1000)).granted).toBe(true)
  await write(database, 'a', ['hold', holdOf(WHO, 'x', { owner: 'a' })], ['settle', settledCall(WHO, 'x')])
  const { quota } = settledCall(WHO, 'x')
  expect(await state(database, 'a', 't:1')).toMatchObject({
    amount: 1000 - quota,
    remain: 500_000 - quota,
    free: 499_000,
    counted: quota,
  })
  expect((await state(database, 'a', 't:1')).counted).toBe(0)
  // The same settlement is not charged again.
  await write(database, 'a', ['settle', settledCall(WHO, 'x')])
  expect((await state(database, 'a', 't:1')).counted).toBe(0)
})

test('quota is never leased to two workers, and the charges of a failed batch change no lease', async () => {
  const { database, path } = await opened()
  await lent({ database }, 'a', 400_000)
  expect((await lent({ database }, 'b', 100_001)).granted).toBe(false)
  expect((await lent({ database }, 'b', 100_000)).granted).toBe(true)
  const other = new DatabaseSync(path)
  other.exec('BEGIN IMMEDIATE')
  const reply = await write(database, 'a', ['settle', settledCall(WHO, 'x')])
  other.exec('ROLLBACK')
  other.close()
  expect(reply.kind).toBe('failed')
  expect(await state(database, 'a', 't:1')).toMatchObject({ amount: 400_000, counted: 0 })
})

test('the quota leases of a lost worker end once its holds are settled, and those of other workers stay', async () => {
  const { database } = await opened()
  await lent({ database }, 'a', 3000)
  await lent({ database }, 'b', 2000)
  await write(database, 'a', ['hold', holdOf(WHO, 'x', { owner: 'a' })])
  await write(database, 'b', ['hold', holdOf(WHO, 'y', { owner: 'b' })])
  const recovered = await database.lose('a')
  expect(recovered).toEqual({ count: 1, quota: 100 })
  expect(await state(database, 'b', 't:1')).toMatchObject({
    remain: 500_000 - 100,
    free: 500_000 - 100 - 2000,
    amount: 2000,
  })
  expect(await database.store.read('findUnbalancedAccounts')).toMatchObject({
    openHolds: { count: 1, amount: 1000 },
  })
})

test("lowering a token's quota, changing its status or deleting it ends all its leases; a higher quota or a charge does not", async () => {
  const { database, announced } = await opened()
  const { store } = database
  const amount = async () => (await state(database, 'a', 't:1')).amount
  const set = (remain_quota: number) =>
    store.write('changeToken', { ...WHO, fields: { remain_quota }, maxQuota: 1e12, nowMs: 0 })
  await lent({ database }, 'a', 1000)
  await write(database, 'a', ['settle', settledCall(WHO, 'x', { quota: 10 })])
  expect(announced).toEqual([])
  await set(600_000)
  expect([announced.splice(0), await amount()]).toEqual([['t:1 0'], 990])
  await set(400_000)
  expect([announced.splice(0), await amount()]).toEqual([['t:1 1'], 0])
  await lent({ database }, 'a', 1000)
  await store.write('enableOrDisableToken', { ...WHO, status: 2, nowMs: 0 })
  expect([announced.splice(0), await amount()]).toEqual([['t:1 2'], 0])
  expect((await lent({ database }, 'a', 1)).granted).toBe(false)
  await store.write('enableOrDisableToken', { ...WHO, status: 1, nowMs: 0 })
  await lent({ database }, 'a', 1000)
  announced.splice(0)
  const other = await store.write('createUser', newUser({ username: 'bob' }))
  await store.write('createToken', newToken(other.id, { key: 'k2' }))
  expect([announced, await amount()]).toEqual([[], 1000])
})

test('the hold of a background call keeps its quota until a worker takes it up, and only one worker can take it up', async () => {
  const { database } = await opened()
  await lent({ database }, 'a', 5000)
  await write(
    database,
    'a',
    ['hold', holdOf(WHO, 'x', { owner: 'a', amount: 3000 })],
    ['parkHold', { id: 'x', userId: 1 }],
  )
  const parkedOf = async (client: string): Promise<ParkedHold[]> => {
    const reply = await write(database, client, ['parkedHolds', undefined])
    if (reply.kind === 'failed') throw new Error('failed')
    return (reply.outcomes[0] as { value: ParkedHold[] }).value
  }
  expect(await parkedOf('b')).toEqual([])
  expect(await database.lose('a')).toEqual({ count: 0, quota: 0 })
  expect(await state(database, 'b', 't:1')).toMatchObject({ free: 500_000 - 3000, amount: 0 })
  expect(await parkedOf('b')).toMatchObject([{ id: 'x', amount: 3000 }])
  expect(await state(database, 'b', 't:1')).toMatchObject({ free: 500_000 - 3000, amount: 3000 })
  expect(await parkedOf('c')).toEqual([])
})
