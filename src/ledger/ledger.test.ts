import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { accountOf, factsOf, settlementOf } from '../../test/ledger-calls.ts'
import { newToken, newUser, SECRETS, storeWithAccount, temporaryFolder } from '../../test/store-rows.ts'
import { openSqliteStore } from '../store/sqlite/open.ts'
import type { Store } from '../store/store.ts'
import { Ledger } from './ledger.ts'
import type { OpenHold } from './open-hold.ts'

describe('the ledger', () => {
  test('admits exactly as many calls as the token affords, in one turn', async () => {
    const { store, tokenId } = await storeWithAccount()
    const ledger = new Ledger(store, 'run')
    const account = await accountOf(ledger, tokenId)
    const admitted = Array.from({ length: 50 }, (_, i) => {
      try {
        return ledger.admit(account, 50_000, factsOf(`h${i}`))
      } catch {
        return undefined
      }
    })
    expect(admitted.filter((hold) => hold)).toHaveLength(10)
  })

  test('refuses by the user where the token could still pay, and says what remains and what is needed', async () => {
    const { store, userId } = await storeWithAccount()
    const rich = await store.write(
      'createToken',
      newToken(userId, { name: 'rich', key: 'k2', remainQuota: 9_000_000 }),
    )
    const ledger = new Ledger(store, 'run')
    const account = await accountOf(ledger, rich.id)
    expect(() => ledger.admit(account, 1_000_001, factsOf('h1'))).toThrow(
      /1000000 remain, 1000001 are needed/,
    )
    expect(ledger.admit(account, 1_000_000, factsOf('h2')).amount).toBe(1_000_000)
  })

  test('an unlimited token is stopped by its user alone, and still moves its own counters', async () => {
    const { store, userId } = await storeWithAccount()
    const token = await store.write(
      'createToken',
      newToken(userId, { name: 'free', key: 'k2', remainQuota: 0, unlimitedQuota: true }),
    )
    const ledger = new Ledger(store, 'run')
    const hold = ledger.admit(await accountOf(ledger, token.id), 900_000, factsOf('h1'))
    await hold.settle(settlementOf(700))
    const row = await store.write('loadAccount', { tokenId: token.id })
    expect(row?.token).toMatchObject({ remainQuota: -700, usedQuota: 700 })
    expect(row?.user).toMatchObject({ quota: 999_300, usedQuota: 700, requestCount: 1 })
  })

  test('a hold is resolved once: a second settlement is a bug that shows', async () => {
    const { store, tokenId } = await storeWithAccount()
    const ledger = new Ledger(store, 'run')
    const hold = ledger.admit(await accountOf(ledger, tokenId), 100, factsOf('h1'))
    await hold.settle(settlementOf(7))
    expect(() => hold.settle(settlementOf(7))).toThrow(/twice/)
    expect(ledger.open.size).toBe(0)
  })

  test('a hold grows only by what is affordable, and gives back all of it', async () => {
    const { store, tokenId } = await storeWithAccount()
    const ledger = new Ledger(store, 'run')
    const account = await accountOf(ledger, tokenId)
    const hold = ledger.admit(account, 400_000, factsOf('h1'))
    expect(hold.grow(100_001)).toBe(false)
    expect(hold.grow(100_000)).toBe(true)
    expect(account.token.free).toBe(0)
    await hold.settle(settlementOf(1))
    expect(account.token.free).toBe(499_999)
  })

  test('an answer dearer than its hold is charged in full, below zero if need be', async () => {
    const { store, tokenId } = await storeWithAccount()
    const ledger = new Ledger(store, 'run')
    const account = await accountOf(ledger, tokenId)
    await ledger.admit(account, 500_000, factsOf('h1')).settle(settlementOf(600_000))
    expect(account.token.free).toBe(-100_000)
    expect((await store.write('loadAccount', { tokenId }))?.token.remainQuota).toBe(-100_000)
  })

  test('a hold is durable before the promise of it resolves', async () => {
    const path = join(temporaryFolder(), 'sluice.db')
    const { store, tokenId } = await storeWithAccount(path)
    const hold = new Ledger(store, 'run')
    const open = hold.admit(await accountOf(hold, tokenId), 100, factsOf('h1'))
    expect(open.isDurable).toBe(false)
    await open.durable
    expect(open.isDurable).toBe(true)
    expect((await store.read('conservation')).openHolds).toEqual({ count: 1, amount: 100 })
  })
})

type Step =
  | { readonly do: 'admit'; readonly token: number; readonly amount: number }
  | { readonly do: 'settle'; readonly nth: number; readonly quota: number }
  | { readonly do: 'grow'; readonly nth: number; readonly by: number }
  | { readonly do: 'crash' }

const steps = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({ do: fc.constant('admit' as const), token: fc.nat(1), amount: fc.nat(400) }),
    },
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constant('settle' as const), nth: fc.nat(9), quota: fc.nat(500) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant('grow' as const), nth: fc.nat(9), by: fc.nat(300) }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('crash' as const) }) },
  ),
  { maxLength: 40 },
)

/** The whole ledger in a few sums: what the real one must agree with after every step. */
class Sums {
  tokens = [1000, 1000]
  user = 1500
  open = new Map<string, { token: number; amount: number }>()

  free(token: number): number {
    const held = [...this.open.values()]
    const ofToken = held.filter((hold) => hold.token === token).reduce((sum, { amount }) => sum + amount, 0)
    const ofUser = held.reduce((sum, { amount }) => sum + amount, 0)
    return Math.min((this.tokens[token] ?? 0) - ofToken, this.user - ofUser)
  }

  settle(id: string, quota: number): void {
    const hold = this.open.get(id)
    if (!hold) throw new Error('settled twice')
    this.open.delete(id)
    this.tokens[hold.token] = (this.tokens[hold.token] ?? 0) - quota
    this.user -= quota
  }
}

async function runs(sequence: readonly Step[]): Promise<void> {
  const path = join(temporaryFolder(), 'sluice.db')
  let store: Store = await openSqliteStore({ path, secret: SECRETS })
  const user = await store.write('createUser', newUser({ quota: 1500 }))
  const ids = [
    (await store.write('createToken', newToken(user.id, { name: 'a', key: 'a', remainQuota: 1000 }))).id,
    (await store.write('createToken', newToken(user.id, { name: 'b', key: 'b', remainQuota: 1000 }))).id,
  ]
  const sums = new Sums()
  let run = 0
  let ledger = new Ledger(store, `run${run}`)
  let holds = new Map<string, OpenHold>()
  for (const [index, step] of sequence.entries()) {
    const [id, hold] = [...holds][('nth' in step ? step.nth : 0) % Math.max(holds.size, 1)] ?? []
    if (step.do === 'admit') {
      const account = await accountOf(ledger, ids[step.token] ?? 0)
      const fits = step.amount <= sums.free(step.token)
      let admitted: OpenHold | undefined
      try {
        admitted = ledger.admit(account, step.amount, factsOf(`h${index}`))
      } catch {}
      expect(admitted !== undefined).toBe(fits)
      if (admitted) holds.set(`h${index}`, admitted)
      if (admitted) sums.open.set(`h${index}`, { token: step.token, amount: step.amount })
    } else if (step.do === 'crash') {
      await store.close()
      store = await openSqliteStore({ path, secret: SECRETS })
      run += 1
      ledger = new Ledger(store, `run${run}`)
      await ledger.recover()
      for (const [open, { amount }] of sums.open)
        sums.settle(open, Math.min(amount, factsOf('').promptAmount))
      holds = new Map()
    } else if (id !== undefined && hold) {
      const known = sums.open.get(id)
      if (step.do === 'grow' && known) {
        const fits = step.by <= sums.free(known.token)
        expect(hold.grow(step.by)).toBe(fits)
        if (fits) known.amount += step.by
      } else if (step.do === 'settle') {
        holds.delete(id)
        sums.settle(id, step.quota)
        void hold.settle(settlementOf(step.quota))
      }
    }
  }
  const rows = await Promise.all(ids.map((tokenId) => store.write('loadAccount', { tokenId })))
  expect(rows.map((row) => row?.token.remainQuota)).toEqual(sums.tokens)
  expect(rows[0]?.user.quota).toBe(sums.user)
  expect((await store.read('conservation')).tokens).toEqual([])
  await store.close()
}

test('any sequence of calls and crashes leaves the balances that a few sums say', async () => {
  await fc.assert(fc.asyncProperty(steps, runs), { numRuns: 12 })
}, 60_000)
