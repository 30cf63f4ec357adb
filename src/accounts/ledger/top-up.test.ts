import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { accountOf, factsOf, settlementOf } from '../../../test/ledger/calls.ts'
import { newToken, newUser, preparedFile, SECRETS, storeWithAccount } from '../../../test/stores/rows.ts'
import type { Token } from '../../domain/records/token.ts'
import type { UserChange } from '../../store/operations/users.ts'
import { openSqliteStore } from '../../store/sqlite/open.ts'
import { Ledger } from './ledger.ts'
import type { OpenHold } from './open-hold.ts'

const MOST = 1_000_000_000_000

const topUpOf = (userId: number, value: number, most = MOST): UserChange => ({
  userId,
  quota: { mode: 'add', value, maxQuota: most },
})

describe('a top-up', () => {
  test('a top-up of a user whose balance is in use can be spent once it is durable', async () => {
    const { store, userId, tokenId } = await storeWithAccount()
    const ledger = new Ledger(store, 'run')
    const account = await accountOf(ledger, tokenId)
    const topUp = ledger.changeUser(topUpOf(userId, 500))
    expect(account.user.free).toBe(1_000_000)
    expect(await topUp).toMatchObject({ id: userId, quota: 1_000_500 })
    expect(account.user.free).toBe(1_000_500)
  })

  test.each(['before', 'after'])(
    'a top-up of a user counts once, even if the balance is read immediately %s it',
    async (when) => {
      const { store, userId, tokenId } = await storeWithAccount()
      const ledger = new Ledger(store, 'run')
      const reading = when === 'before' ? accountOf(ledger, tokenId) : undefined
      const topUp = ledger.changeUser(topUpOf(userId, 500))
      const [account] = await Promise.all([reading ?? accountOf(ledger, tokenId), topUp])
      expect(account.user.remain).toBe(1_000_500)
    },
  )

  test("a top-up that is refused is never part of the user's free balance, not even before the refusal", async () => {
    const { store, userId, tokenId } = await storeWithAccount()
    const ledger = new Ledger(store, 'run')
    const account = await accountOf(ledger, tokenId)
    const topUp = ledger.changeUser(topUpOf(userId, 500, 1_000_000))
    expect(account.user.free).toBe(1_000_000)
    await expect(topUp).rejects.toThrow('no user may have more than 1000000 quota units')
    expect(account.user.free).toBe(1_000_000)
  })

  test('a top-up of an unknown user returns undefined', async () => {
    const { store } = await storeWithAccount()
    expect(await new Ledger(store, 'run').changeUser(topUpOf(99, 1))).toBeUndefined()
  })
})

test("overriding a user's quota keeps the charges that were queued after the override", async () => {
  const { store, userId, tokenId } = await storeWithAccount()
  const ledger = new Ledger(store, 'run')
  const account = await accountOf(ledger, tokenId)
  const [before, after, open] = ['a', 'b', 'c'].map((id) => ledger.admit(account, 100, factsOf(id)))
  const settled = before?.settle(settlementOf(7))
  const overridden = ledger.changeUser({ userId, quota: { mode: 'override', value: 500, maxQuota: MOST } })
  await Promise.all([settled, after?.settle(settlementOf(11)), overridden])
  expect([account.user.remain, account.user.free]).toEqual([489, 389])
  await open?.settle(settlementOf(13))
  expect(account.user.remain).toBe(476)
  expect((await store.read('userById', userId))?.quota).toBe(476)
})

type Step =
  | { readonly do: 'admit'; readonly token: number; readonly amount: number }
  | { readonly do: 'settle'; readonly nth: number; readonly quota: number }
  | { readonly do: 'topUp'; readonly amount: number }
  | { readonly do: 'override'; readonly value: number }
  /** Waits for all writes queued so far. */
  | { readonly do: 'wait' }

const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('admit' as const), token: fc.nat(2), amount: fc.nat(300) }),
    fc.record({ do: fc.constant('settle' as const), nth: fc.nat(9), quota: fc.nat(400) }),
    fc.record({ do: fc.constant('topUp' as const), amount: fc.integer({ min: 1, max: 500 }) }),
    fc.record({ do: fc.constant('override' as const), value: fc.integer({ min: 0, max: 3000 }) }),
    fc.record({ do: fc.constant('wait' as const) }),
  ),
  { maxLength: 40 },
)

async function runs(sequence: readonly Step[]): Promise<void> {
  const store = await openSqliteStore({ path: await preparedFile(), secrets: SECRETS, onCallingThread: true })
  const user = await store.write('createUser', newUser({ quota: 1000 }))
  const tokens: Token[] = []
  for (const key of ['a', 'b', 'c']) {
    tokens.push(
      await store.write('createToken', newToken(user.id, { name: key, key, unlimited_quota: true })),
    )
  }
  const ledger = new Ledger(store, 'run')
  const pending: Promise<unknown>[] = []
  const holds: OpenHold[] = []
  let [given, spent] = [1000, 0]
  const admit = async (id: string, token: number, amount: number): Promise<void> => {
    const account = await accountOf(ledger, tokens[token]?.id ?? 0)
    try {
      holds.push(ledger.admit(account, amount, factsOf(id)))
    } catch {}
  }
  for (const [index, step] of sequence.entries()) {
    switch (step.do) {
      case 'admit':
        // The token's balance may not have been read yet, so the admission is queued too.
        pending.push(admit(`h${index}`, step.token, step.amount))
        break
      case 'settle': {
        const [hold] = holds.splice(step.nth % Math.max(holds.length, 1), 1)
        if (!hold) break
        const quota = Math.min(step.quota, hold.amount)
        spent += quota
        pending.push(hold.settle(settlementOf(quota)))
        break
      }
      case 'topUp':
        given += step.amount
        pending.push(ledger.changeUser(topUpOf(user.id, step.amount)))
        break
      case 'override':
        // Charges queued before an override vanish together with the quota that it replaces.
        pending.push(
          ledger.changeUser({
            userId: user.id,
            quota: { mode: 'override', value: step.value, maxQuota: MOST },
          }),
        )
        ;[given, spent] = [step.value, 0]
        break
      case 'wait':
        await Promise.all(pending)
    }
  }
  await Promise.all(pending)
  const account = await accountOf(ledger, tokens[0]?.id ?? 0)
  expect(account.user.remain).toBe(given - spent)
  // Only an override may take quota that is already held.
  const min = sequence.some((step) => step.do === 'override') ? Number.NEGATIVE_INFINITY : 0
  expect(account.user.free).toBeGreaterThanOrEqual(min)
  expect((await store.read('userById', user.id))?.quota).toBe(given - spent)
  await store.close()
}

test("after concurrent holds, charges and top-ups, a user's balance in memory equals that in the database", async () => {
  await fc.assert(fc.asyncProperty(steps, runs), { numRuns: 20 })
})
