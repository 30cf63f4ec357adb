import type { TokenChanges } from '../../domain/records/token.ts'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { accountOf, factsOf, settlementOf } from '../../../test/ledger/calls.ts'
import { newToken, newUser, openedStore, storeWithAccount } from '../../../test/stores/rows.ts'
import type { TokenChange } from '../../store/operations/tokens.ts'
import type { Store } from '../../store/store.ts'
import { Ledger } from './ledger.ts'
import type { OpenHold } from './open-hold.ts'

const MOST = 1_000_000_000_000

function changeOf(userId: number, tokenId: number, fields: TokenChanges): TokenChange {
  return { userId, tokenId, fields, maxQuota: MOST, nowMs: 0 }
}

describe('a quota that is set', () => {
  test('a new quota of a key can be spent once it is written, and open holds reduce it', async () => {
    const { store, userId, tokenId } = await storeWithAccount()
    const ledger = new Ledger(store, 'run')
    const account = await accountOf(ledger, tokenId)
    const hold = ledger.admit(account, 400, factsOf('h'))
    const setting = ledger.changeToken(changeOf(userId, tokenId, { remain_quota: 1000 }))
    expect(account.token.free).toBe(500_000 - 400)
    expect((await setting)?.token.remain_quota).toBe(1000)
    expect(account.token.free).toBe(600)
    await hold.settle(settlementOf(300))
    expect(account.token.free).toBe(700)
    expect((await store.read('tokenById', { tokenId }))?.remain_quota).toBe(700)
  })

  test('a quota that is set for a key is reduced by calls that are charged while it is written', async () => {
    const { store, userId, tokenId } = await storeWithAccount()
    const ledger = new Ledger(store, 'run')
    const account = await accountOf(ledger, tokenId)
    const [early, late] = [ledger.admit(account, 400, factsOf('a')), ledger.admit(account, 400, factsOf('b'))]
    await Promise.all([
      early.settle(settlementOf(100)),
      ledger.changeToken(changeOf(userId, tokenId, { remain_quota: 1000 })),
      late.settle(settlementOf(200)),
    ])
    expect(account.token.remain).toBe(800)
    expect((await store.read('tokenById', { tokenId }))?.remain_quota).toBe(800)
  })

  test.each(['before', 'after'])(
    'a quota that is set for a key counts once, even if the balance is read immediately %s it',
    async (when) => {
      const { store, userId, tokenId } = await storeWithAccount()
      const ledger = new Ledger(store, 'run')
      const reading = when === 'before' ? accountOf(ledger, tokenId) : undefined
      const setting = ledger.changeToken(
        changeOf(userId, tokenId, { remain_quota: 7, unlimited_quota: true }),
      )
      const [account] = await Promise.all([reading ?? accountOf(ledger, tokenId), setting])
      expect([account.token.remain, account.token.isUnlimited]).toEqual([7, true])
    },
  )

  test('setting an invalid quota for a key is refused and changes nothing', async () => {
    const { store, userId, tokenId } = await storeWithAccount()
    const ledger = new Ledger(store, 'run')
    const account = await accountOf(ledger, tokenId)
    const setting = ledger.changeToken(changeOf(userId, tokenId, { remain_quota: MOST + 1 }))
    await expect(setting).rejects.toThrow('remain_quota')
    expect(account.token.free).toBe(500_000)
  })

  test('the quota of a key is exact to the unit, even for the largest numbers', async () => {
    const { store, userId, tokenId } = await storeWithAccount()
    const ledger = new Ledger(store, 'run')
    const account = await accountOf(ledger, tokenId)
    for (const remain_quota of [Number.MAX_SAFE_INTEGER, -(2 ** 52), 5]) {
      await ledger.changeToken(changeOf(userId, tokenId, { remain_quota, unlimited_quota: true }))
      expect(account.token.remain).toBe(remain_quota)
    }
  })

  test("setting the quota of another user's key, or of a missing key, returns undefined and changes nothing", async () => {
    const { store, userId, tokenId } = await storeWithAccount()
    const ledger = new Ledger(store, 'run')
    expect(await ledger.changeToken(changeOf(userId, 99, { remain_quota: 7 }))).toBeUndefined()
    expect(await ledger.changeToken(changeOf(userId + 1, tokenId, { remain_quota: 7 }))).toBeUndefined()
    expect((await store.read('tokenById', { tokenId }))?.remain_quota).toBe(500_000)
  })
})

type Step =
  | { readonly do: 'admit'; readonly amount: number }
  | { readonly do: 'settle'; readonly nth: number; readonly quota: number }
  | { readonly do: 'set'; readonly remain: number }
  | { readonly do: 'limit'; readonly unlimited: boolean }
  /** Waits for all writes queued so far. */
  | { readonly do: 'wait' }

const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('admit' as const), amount: fc.nat(300) }),
    fc.record({ do: fc.constant('settle' as const), nth: fc.nat(9), quota: fc.nat(400) }),
    fc.record({ do: fc.constant('set' as const), remain: fc.nat(1000) }),
    fc.record({ do: fc.constant('limit' as const), unlimited: fc.boolean() }),
    fc.record({ do: fc.constant('wait' as const) }),
  ),
  { maxLength: 40 },
)

/** Runs a sequence on a separate user, token and ledger; `name` distinguishes runs. */
async function runs(store: Store, name: string, sequence: readonly Step[]): Promise<void> {
  const user = await store.write('createUser', newUser({ username: name }))
  const token = await store.write('createToken', newToken(user.id, { key: name, remain_quota: 1000 }))
  const ledger = new Ledger(store, name)
  const pending: Promise<unknown>[] = []
  const holds: OpenHold[] = []
  let [expected, spent] = [1000, 0]
  const admit = async (id: string, amount: number): Promise<void> => {
    const account = await accountOf(ledger, token.id)
    try {
      holds.push(ledger.admit(account, amount, factsOf(`${name} ${id}`)))
    } catch {}
  }
  for (const [index, step] of sequence.entries()) {
    switch (step.do) {
      case 'admit':
        pending.push(admit(`h${index}`, step.amount))
        break
      case 'settle': {
        const [hold] = holds.splice(step.nth % Math.max(holds.length, 1), 1)
        if (!hold) break
        expected -= step.quota
        spent += step.quota
        pending.push(hold.settle(settlementOf(step.quota)))
        break
      }
      case 'set':
        expected = step.remain
        pending.push(ledger.changeToken(changeOf(user.id, token.id, { remain_quota: step.remain })))
        break
      case 'limit':
        pending.push(ledger.changeToken(changeOf(user.id, token.id, { unlimited_quota: step.unlimited })))
        break
      case 'wait':
        await Promise.all(pending)
    }
  }
  await Promise.all(pending)
  const account = await accountOf(ledger, token.id)
  const row = await store.read('tokenById', { tokenId: token.id })
  expect(row?.remain_quota).toBe(expected)
  expect(row?.used_quota).toBe(spent)
  expect(account.token.remain).toBe(expected)
  expect(account.token.isUnlimited).toBe(row?.unlimited_quota)
}

test("after concurrent holds, charges and quota changes, a key's balance in memory equals that in the database", async () => {
  const store = await openedStore()
  let count = 0
  await fc.assert(
    fc.asyncProperty(steps, (sequence) => runs(store, `run${count++}`, sequence)),
    { numRuns: 30 },
  )
})
