import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { factsOf, settlementOf } from '../../../test/ledger/calls.ts'
import { LEDGER_BANKS, type LedgerNode } from '../../../test/ledger/banks.ts'

import { newToken, newUser, SECRETS } from '../../../test/stores/rows.ts'
import { hashKey } from '../../store/secrets.ts'
import { StoreUnavailable } from '../../store/store-unavailable.ts'
import { findChargedBalances } from './find-charged-balances.ts'
import type { OpenHold } from './open-hold.ts'
import { affordableAmount } from './charged-balances.ts'
import { Unaffordable } from './quota-refusal.ts'

const MOST = 1_000_000_000_000

async function admit(
  { ledger, accounts }: LedgerNode,
  tokenId: number,
  amount: number,
  id: string,
): Promise<OpenHold> {
  const account = accounts.get(tokenId) ?? (await accounts.load(tokenId))
  if (!account) throw new Error('no account')
  const payer = await accounts.ensureAffordable({ account, budgets: [] }, amount)
  return ledger.admit(payer.account, amount, factsOf(id))
}

describe.each(LEDGER_BANKS)('$name', ({ open }) => {
  test('a node uses the spare quota of other nodes before it refuses a call', async () => {
    const {
      tokenId,
      nodes: [a, b],
    } = await open(2)
    if (!a || !b) throw new Error('no nodes')
    await (await admit(a, tokenId, 1_000, 'a')).settle(settlementOf(1_000))
    // On a busy machine, the other node may return its spare quota too late for one call.
    const admitted = (...wanted: Parameters<typeof admit>): Promise<OpenHold> =>
      vi.waitFor(() => admit(...wanted), { timeout: 60_000, interval: 50 })
    const rest = await admitted(b, tokenId, 499_000, 'b')
    await expect(admit(a, tokenId, 1, 'c')).rejects.toThrow(/0 remain, 1 are needed/)
    await rest.settle(settlementOf(400_000))
    const last = await admitted(a, tokenId, 99_000, 'd')
    await last.settle(settlementOf(99_000))
  })

  test('a node finds a key and its balances in one request to the database, and caches both', async () => {
    const {
      tokenId,
      nodes: [node],
    } = await open(1)
    const found = await node?.accounts.findByKeyHash(hashKey(SECRETS, 'k1'))
    expect(found).toMatchObject({ token: { id: tokenId }, user: { username: 'ada' } })
    expect(node?.accounts.get(tokenId)).toBe(found?.account)
    expect(await node?.accounts.findByKeyHash('of nobody')).toBeUndefined()
  })

  test('an account that changed during its lookup is not cached, and is looked up again', async () => {
    const {
      tokenId,
      nodes: [node],
    } = await open(1)
    if (!node) throw new Error('no node')
    const finding = node.accounts.findByKeyHash(hashKey(SECRETS, 'k1'))
    node.accounts.onChanged(`t:${tokenId}`)
    expect(await finding).toBeDefined()
    expect(node.accounts.get(tokenId)).toBeUndefined()
    await node.accounts.load(tokenId)
    expect(node.accounts.get(tokenId)).toBeDefined()
  })

  test('a hold grows once the node has borrowed more quota for it', async () => {
    const {
      tokenId,
      nodes: [node],
    } = await open(1)
    if (!node) throw new Error('no node')
    const hold = await admit(node, tokenId, 400_000, 'a')
    expect(hold.grow(90_000)).toBe(false)
    await vi.waitFor(() => expect(hold.grow(90_000)).toBe(true), 60_000)
    expect(hold.grow(20_000)).toBe(false)
    await hold.settle(settlementOf(480_000))
  })

  test('borrowing quota for a key that was disabled meanwhile is refused with the error of a disabled key', async () => {
    const {
      store,
      tokenId,
      userId,
      nodes: [node],
    } = await open(1)
    if (!node) throw new Error('no node')
    await (await admit(node, tokenId, 10, 'a')).settle(settlementOf(1))
    const account = node.accounts.get(tokenId)
    await store.write('enableOrDisableToken', { tokenId, userId, status: 2, nowMs: 0 })
    if (!account) throw new Error('no account')
    await expect(node.accounts.ensureAffordable({ account, budgets: [] }, 499_000)).rejects.toThrow(
      'this API key is disabled',
    )
  })

  test('what a stream holds of a user who became limited is borrowed once the database answers in time again', async () => {
    const {
      sql,
      tokenId,
      userId,
      nodes: [node],
    } = await open(1)
    if (!node) throw new Error('no node')
    await sql(`update users set unlimited_quota = 1 where id = ${userId}`)
    await sql(`update tokens set unlimited_quota = 1 where id = ${tokenId}`)
    const stream = await admit(node, tokenId, 300_000, 'stream')
    await stream.whenDurable()
    // Longer than a loan waits.
    const ofToken = `from tokens where id = ${tokenId} for update`
    const locked = sql(`do $$ begin perform 1 ${ofToken}; perform pg_sleep(4); end $$`)
    // A machine that halts may see the lock only after its end.
    let isOver = false
    void locked.finally(() => (isOver = true)).catch(() => {})
    await expect
      .poll(async () => isOver || (await sql(`select 1 ${ofToken} skip locked`)).length === 0)
      .toBe(true)
    await sql(`update users set unlimited_quota = 0, quota = 400000 where id = ${userId}`)
    await node.bankClient.resync()
    await locked
    const limited = { isUnlimited: false, held: 300_000, remain: 300_000 }
    await expect.poll(() => node.accounts.get(tokenId)?.user).toMatchObject(limited)
    await stream.settle(settlementOf(0))
  })

  test('nodes count exactly what an unlimited user holds, and refuse at once what is more', async () => {
    const { store, sql, tokenId, userId, nodes } = await open(2)
    await sql(`update users set unlimited_quota = 1 where id = ${userId}`)
    await sql(`update tokens set unlimited_quota = 1 where id = ${tokenId}`)
    const most = Number.MAX_SAFE_INTEGER
    for (const [at, node] of nodes.entries()) {
      const account = (await node.accounts.load(tokenId))!
      const payer = await node.accounts.ensureAffordable({ account, budgets: [] }, most)
      const hold = node.ledger.admit(payer.account, most, factsOf(`first-${at}`))
      await hold.whenDurable()
      for (const refused of [
        node.accounts.ensureAffordable(payer, 1),
        node.ledger.admitInTime(payer, 1, factsOf('c'), { waitMs: 600_000, onLeft: () => () => {} }),
      ])
        await expect(refused).rejects.toMatchObject({ code: 'insufficient_quota' })
    }
    const accounts = [`u:${userId}`] as const
    await vi.waitFor(async () => {
      const [held] = await store.read('heldByNodes', { accounts, except: '' })
      expect(held?.held).toBeGreaterThanOrEqual(2 * most)
    }, 60_000)
  })

  test("a node's reads of a key or user include all charges of this node", async () => {
    const {
      tokenId,
      nodes: [node],
    } = await open(1)
    if (!node) throw new Error('no node')
    for (let call = 1; call <= 5; call += 1) {
      await (await admit(node, tokenId, 100, `${call}`)).settle(settlementOf(7))
      expect(await node.store.read('tokenById', { tokenId })).toMatchObject({ used_quota: 7 * call })
      expect((await node.store.write('loadAccount', { tokenId }))?.user.used_quota).toBe(7 * call)
    }
  })

  test("quota that a node borrowed for a call stays available to this call while another node requests the node's spare quota", async () => {
    const {
      store,
      nodes: [node],
    } = await open(1)
    const user = await store.write('createUser', newUser({ username: 'rich', quota: MOST }))
    const token = await store.write('createToken', newToken(user.id, { key: 'rich', remain_quota: MOST }))
    if (!node) throw new Error('no node')
    const { accounts, bankClient, ledger } = node
    const over = new AbortController()
    const recalling = (async () => {
      for (; !over.signal.aborted; await nextTurn()) bankClient.leases.requestRecall(`t:${token.id}`)
    })()
    try {
      for (let n = 1; n <= 20; n += 1) {
        const amount = n * 10_000_000_000
        accounts.forget(`t:${token.id}`)
        const payer = await findChargedBalances(accounts, { token, user, groups: [], startedMs: 0 })
        const { account } = await accounts.ensureAffordable(payer, amount)
        const hold = ledger.admit(account, amount, factsOf(`${n}`))
        await hold.settle(settlementOf(0))
      }
    } finally {
      over.abort()
      await recalling
    }
  })

  test('a call whose borrowed quota is taken by other calls each time fails as if the database were unavailable, and not as refused', async () => {
    const {
      store,
      nodes: [node],
    } = await open(1)
    if (!node) throw new Error('no node')
    const user = await store.write('createUser', newUser({ username: 'rich', quota: MOST }))
    const token = await store.write('createToken', newToken(user.id, { key: 'rich', remain_quota: MOST }))
    const { accounts, bankClient, ledger } = node
    const account = await accounts.load(token.id)
    if (!account) throw new Error('no account')
    const acquire = bankClient.acquire.bind(bankClient)
    const others: OpenHold[] = []
    let takesAll = true
    bankClient.acquire = async (request) => {
      const loan = await acquire(request)
      if (takesAll)
        others.push(ledger.admit(account, affordableAmount(account, []), factsOf(`other ${others.length}`)))
      return loan
    }
    const amount = affordableAmount(account, []) + 1
    const call = () => accounts.ensureAffordable({ account, budgets: [] }, amount)
    await expect(call()).rejects.toThrow(StoreUnavailable)
    await expect(call()).rejects.toThrow('other calls took the quota that was leased for this one')
    // Four rounds of three loans for each call.
    expect(others).toHaveLength(24)
    takesAll = false
    const { account: payer } = await call()
    await ledger.admit(payer, amount, factsOf('mine')).settle(settlementOf(amount))
    for (const hold of others) await hold.settle(settlementOf(0))
  })

  test('quota that an idle node has borrowed is returned', async () => {
    const {
      lent,
      tokenId,
      nodes: [node],
    } = await open(1)
    if (!node) throw new Error('no node')
    await (await admit(node, tokenId, 1_000, 'a')).settle(settlementOf(1_000))
    expect(await lent()).toBeGreaterThan(0)
    await vi.waitFor(async () => expect(await lent()).toBe(0), { timeout: 60_000, interval: 200 })
    expect(node.accounts.get(tokenId)).toBeUndefined()
  })

  test('nodes under concurrent calls never spend more than the quota, and report every charge to the database', async () => {
    const { store, nodes, lent } = await open(3)
    const step = fc.record({
      node: fc.nat(2),
      token: fc.nat(1),
      amount: fc.integer({ min: 1, max: 900 }),
      part: fc.double({ min: 0, max: 1, noNaN: true }),
      pauseMs: fc.nat(15),
    })
    let run = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40, size: 'max' }), async (steps) => {
        run += 1
        const name = `r${run}`
        const user = await store.write('createUser', newUser({ username: name, quota: 3_000 }))
        const ids: number[] = []
        for (const key of [`${name}a`, `${name}b`]) {
          ids.push((await store.write('createToken', newToken(user.id, { key, remain_quota: 2_000 }))).id)
        }
        let [spent, open] = [0, 0]
        const calls = steps.map(async ({ node, token, amount, part, pauseMs }, index) => {
          await delay(pauseMs)
          const target = nodes[node]
          if (!target) return
          try {
            const hold = await admit(target, ids[token] ?? 0, amount, `${name} ${index}`)
            open += amount
            expect(open + spent).toBeLessThanOrEqual(3_000)
            await delay(pauseMs)
            const quota = Math.floor(amount * part)
            open -= amount
            spent += quota
            await hold.settle(settlementOf(quota))
          } catch (error) {
            if (!(error instanceof Unaffordable)) throw error
          }
        })
        await Promise.all(calls)
        await expect
          .poll(() => store.read('userById', user.id))
          .toMatchObject({ used_quota: spent, quota: 3_000 - spent })
      }),
      { numRuns: 8 },
    )
    await Promise.all(nodes.map(({ close }) => close()))
    expect(await lent()).toBe(0)
    expect(await store.read('findUnbalancedAccounts')).toMatchObject({ tokens: [], users: [], days: [] })
  })

  test('a lowered quota leaves what open holds need, so that no other node can spend it', async () => {
    const {
      tokenId,
      userId,
      nodes: [a, b],
    } = await open(2)
    if (!a || !b) throw new Error('no nodes')
    const hold = await admit(a, tokenId, 100_000, 'a')
    await hold.whenDurable()
    await a.bankClient.resync()
    const fields = { remain_quota: 150_000 }
    await b.ledger.changeToken({ tokenId, userId, fields, maxQuota: MOST, nowMs: Date.now() })
    await expect(admit(b, tokenId, 50_001, 'b')).rejects.toThrow(/50000 remain/)
    await (await admit(b, tokenId, 50_000, 'c')).settle(settlementOf(50_000))
    await hold.settle(settlementOf(100_000))
  })

  test('added quota can be spent, and removed quota cannot, on every node', async () => {
    const {
      store,
      tokenId,
      userId,
      nodes: [node],
    } = await open(1)
    if (!node) throw new Error('no node')
    const hold = await admit(node, tokenId, 100_000, 'a')
    const set = (remain_quota: number) =>
      node.ledger.changeToken({
        tokenId,
        userId,
        fields: { remain_quota },
        maxQuota: MOST,
        nowMs: Date.now(),
      })
    expect((await set(150_000))?.token.remain_quota).toBe(150_000)
    // Open holds count against the new quota.
    await expect(admit(node, tokenId, 50_001, 'b')).rejects.toThrow(/50000 remain/)
    await set(400_000)
    await (await admit(node, tokenId, 250_000, 'c')).settle(settlementOf(1))
    await hold.settle(settlementOf(99))
    await expect.poll(() => store.read('tokenById', { tokenId })).toMatchObject({ remain_quota: 399_900 })
  })
})
