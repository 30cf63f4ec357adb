import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { randomFrom } from '../../../test/fixtures/random.ts'
import { factsOf, settlementOf } from '../../../test/ledger/calls.ts'
import { LEDGER_BANKS, type LedgerNode, nodesOn } from '../../../test/ledger/banks.ts'
import { ENGINES, rowsWithAccount } from '../../../test/stores/engines.ts'
import { newToken, openedStore, addAccount } from '../../../test/stores/rows.ts'
import { type Budget, type BudgetName, budgetInPeriodAt } from '../../domain/budget.ts'
import { byTier } from '../../../test/runner/tier.ts'
import type { RowStore } from '../../store/store.ts'
import { StoreUnavailable } from '../../store/store-unavailable.ts'
import { findChargedBalances } from './find-charged-balances.ts'
import { Ledger } from './ledger.ts'
import type { OpenHold } from './open-hold.ts'
import { BudgetExceeded, QuotaHeldByOtherCalls, Unaffordable } from './quota-refusal.ts'

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const CALLS = byTier(200, 5000)
const PROMPT = 5
/** The end of a month that falls in the middle of a week. */
const BOUNDARY = Date.parse('2026-12-01T00:00:00Z')
const DAY_MS = 86_400_000

interface Terms {
  readonly tokenId: number
  readonly userId: number
  readonly token?: Budget
  readonly user?: Budget
  readonly group?: Budget
}

async function admitted(
  { accounts, admit }: Pick<Ledger, 'accounts'> & { admit: Ledger['admit'] },
  periodBudgets: Terms,
  { id, startedMs, amount }: { id: string; startedMs: number; amount: number },
): Promise<OpenHold> {
  const payer = await findChargedBalances(accounts, {
    token: { id: periodBudgets.tokenId, budget: periodBudgets.token },
    user: { id: periodBudgets.userId, budget: periodBudgets.user },
    groups: [{ name: 'default', budget: periodBudgets.group }],
    startedMs,
  })
  const { account, budgets } = await accounts.ensureAffordable(payer, amount)
  return admit(account, amount, { ...factsOf(id), started_ms: startedMs }, budgets)
}

const of = (ledger: Ledger) => ({
  accounts: ledger.accounts,
  admit: ledger.admit.bind(ledger),
})

/** Admits calls of a key without a budget, whose group has one for a month. */
const callOfGroup =
  ({ tokenId, userId }: Pick<Terms, 'tokenId' | 'userId'>) =>
  (node: LedgerNode, budget: number, amount: number): Promise<OpenHold> => {
    const group = { amount: budget, period: 'month' } as const
    const id = `c${performance.now()}`
    return admitted(of(node.ledger), { tokenId, userId, group }, { id, startedMs: BOUNDARY, amount })
  }

function namesAt(periodBudgets: Terms, startedMs: number): BudgetName[] {
  const owners = [
    [periodBudgets.token, `t:${periodBudgets.tokenId}`],
    [periodBudgets.user, `u:${periodBudgets.userId}`],
    [periodBudgets.group, 'g:default'],
  ] as const
  return owners.flatMap(([budget, owner]) =>
    budget ? [budgetInPeriodAt(budget, owner, startedMs).name] : [],
  )
}

async function usedOf(
  rows: Pick<RowStore, 'read'>,
  names: readonly BudgetName[],
): Promise<Map<string, number>> {
  const used = await rows.read('readBudgetUse', { names })
  return new Map(used.map(({ name, used }) => [name, used]))
}

/**
 * Expects a budget to be used up to an amount, once the node of each call has reported it; a busy machine may
 * do so late.
 */
async function expectUsed(
  rows: Pick<RowStore, 'read'>,
  names: readonly BudgetName[],
  sum: number,
): Promise<void> {
  await expect.poll(async () => [...(await usedOf(rows, names)).values()]).toEqual([sum])
}

test(`after ${CALLS} calls with clock jumps and process kills, each budget is the sum of the calls that began in its period`, async () => {
  const store = await openedStore()
  const { userId, tokenId } = await addAccount(store)
  const second = await store.write(
    'createToken',
    newToken(userId, { name: 'b', key: 'k2', unlimited_quota: true }),
  )
  await store.write('changeUser', { userId, quota: { mode: 'override', value: 1e12, maxQuota: 1e12 } })
  const random = randomFrom(SEED)
  const amountOf = (max: number): number => 1 + Math.floor(random() * max)
  let ledger = new Ledger(store, 'run 0')
  const sums = new Map<BudgetName, { used: number; held: number }>()
  const open = new Map<string, { hold: OpenHold; names: BudgetName[]; amount: number }>()
  const sumOf = (name: BudgetName) => {
    const sum = sums.get(name) ?? { used: 0, held: 0 }
    sums.set(name, sum)
    return sum
  }
  const charge = (id: string, quota: number): void => {
    const call = open.get(id)
    for (const name of call?.names ?? []) {
      sumOf(name).used += quota
      sumOf(name).held -= call?.amount ?? 0
    }
    open.delete(id)
  }
  let [refusals, runs] = [0, 0]
  for (let n = 0; n < CALLS; n += 1) {
    const periodBudgets: Terms = {
      tokenId: random() < 0.1 ? tokenId : second.id,
      userId,
      token: { amount: 3000, period: 'day' },
      user: { amount: 9000, period: 'week' },
      // The group's budget changes while calls are in flight.
      group: { amount: 8000 + amountOf(12_000), period: 'month' },
    }
    const startedMs = BOUNDARY + Math.floor((random() - 0.5) * 3 * DAY_MS)
    const names = namesAt(periodBudgets, startedMs)
    const amounts = [3000, 9000, periodBudgets.group?.amount ?? 0]
    const amount = amountOf(700)
    const free = Math.min(...names.map((name, i) => (amounts[i] ?? 0) - sumOf(name).used - sumOf(name).held))
    const id = `${n}`
    try {
      const hold = await admitted(of(ledger), periodBudgets, { id, startedMs, amount })
      expect(amount, `SEED=${SEED} ${n}`).toBeLessThanOrEqual(free)
      for (const name of names) sumOf(name).held += amount
      open.set(id, { hold, names, amount })
    } catch (error) {
      if (!(error instanceof Unaffordable)) throw error
      expect(amount, `SEED=${SEED} ${n}`).toBeGreaterThan(free)
      refusals += 1
    }
    const [oldest] = open.keys()
    if (oldest !== undefined && random() < 0.6) {
      const quota = Math.floor(random() * ((open.get(oldest)?.amount ?? 0) + 1))
      const settled = open.get(oldest)?.hold.settle(settlementOf(quota))
      charge(oldest, quota)
      await settled
    }
    // Two kills are certain, the others by chance.
    if (n === CALLS / 4 || n === CALLS / 2 || random() < 0.02) {
      // Another run, which knows only the file.
      await Promise.all([...open.values()].map(({ hold }) => hold.whenDurable()))
      ledger = new Ledger(store, `run ${++runs}`)
      await ledger.recover()
      for (const [at, { amount: held }] of open) charge(at, Math.min(held, PROMPT))
    }
  }
  for (const [id, { hold, amount }] of open) {
    await hold.settle(settlementOf(amount))
    charge(id, amount)
  }
  const used = await usedOf(store, [...sums.keys()])
  for (const [name, sum] of sums) expect([name, used.get(name) ?? 0]).toEqual([name, sum.used])
  expect(refusals).toBeGreaterThan(20)
  expect(runs).toBeGreaterThan(1)
})

describe.each(ENGINES)('a budget on $name', (engine) => {
  test('a charge that reaches 80 % or 100 % of a budget records this in the same transaction, once a period', async () => {
    const { store, database, userId, tokenId } = await rowsWithAccount(engine)
    if (engine.name === 'SQLite') {
      const local = await openedStore(database.place)
      await notesCrossings(new Ledger(local, 'run'))
    } else {
      const {
        nodes: [node],
      } = await nodesOn(store, database.place, 1)
      if (!node) throw new Error('no node')
      await notesCrossings(node.ledger)
    }
    async function notesCrossings(ledger: Ledger): Promise<void> {
      const user: Budget = { amount: 1000, period: 'month' }
      const periodBudgets: Terms = { tokenId, userId, user }
      let spent = 0
      for (const [id, amount] of Object.entries({ a: 799, b: 1, c: 199, d: 1 })) {
        const hold = await admitted(of(ledger), periodBudgets, { id, startedMs: BOUNDARY, amount })
        await hold.settle(settlementOf(amount))
        spent += amount
        await expectUsed(store, namesAt(periodBudgets, BOUNDARY), spent)
      }
      const later = BOUNDARY + 40 * DAY_MS
      const last = await admitted(of(ledger), periodBudgets, { id: 'e', startedMs: later, amount: 900 })
      await last.settle(settlementOf(900))
      await expectUsed(store, namesAt(periodBudgets, later), 900)
    }
    const rows = await database.sql(
      'SELECT account, percent, used FROM budget_crossings ORDER BY account, percent',
    )
    expect(rows).toEqual([
      { account: `b:month:2026-12-01:u:${userId}`, percent: 80, used: 800 },
      { account: `b:month:2026-12-01:u:${userId}`, percent: 100, used: 1000 },
      { account: `b:month:2027-01-01:u:${userId}`, percent: 80, used: 900 },
    ])
  })
})

test('a budget for 100 calls admits exactly 100 of 1,000 concurrent calls on SQLite', async () => {
  const store = await openedStore()
  const { userId, tokenId } = await addAccount(store)
  const ledger = new Ledger(store, 'run')
  const periodBudgets: Terms = { tokenId, userId, user: { amount: 1000, period: 'day' } }
  const call = (id: string): Promise<OpenHold> =>
    admitted(of(ledger), periodBudgets, { id, startedMs: BOUNDARY, amount: 10 })
  const calls = await Promise.allSettled(Array.from({ length: 1000 }, (_, n) => call(`c${n}`)))
  const holds = calls.flatMap((made) => (made.status === 'fulfilled' ? [made.value] : []))
  expect(holds).toHaveLength(100)
  for (const made of calls)
    if (made.status === 'rejected') expect(made.reason).toBeInstanceOf(QuotaHeldByOtherCalls)
  await Promise.all(holds.map((hold) => hold.settle(settlementOf(10))))
  const names = namesAt(periodBudgets, BOUNDARY)
  expect([...(await usedOf(store, names)).values()]).toEqual([1000])
  await expect(call('late')).rejects.toThrow(BudgetExceeded)
})

describe.each(LEDGER_BANKS)('$name', ({ open }) => {
  test.for([1, 3])(
    'on %i nodes with a shared database, a budget for 100 calls admits exactly 100 of 1,000 concurrent calls',
    async (count, { signal }) => {
      const { store, userId, tokenId, nodes } = await open(count)
      const periodBudgets: Terms = { tokenId, userId, group: { amount: 1000, period: 'month' } }
      const call = async (n: number, id: string): Promise<OpenHold | undefined> => {
        const node = nodes[n % count]
        if (!node) throw new Error('no node')
        for (;;) {
          try {
            return await admitted(of(node.ledger), periodBudgets, { id, startedMs: BOUNDARY, amount: 10 })
          } catch (error) {
            if (error instanceof Unaffordable) return undefined
            // A busy database may be late: the gateway responds with 503, and clients retry.
            if (!(error instanceof StoreUnavailable)) throw error
          }
          // Without a turn of the event loop, responses of the database would never be read.
          await delay(5, undefined, { signal })
        }
      }
      const calls = await Promise.all(Array.from({ length: 1000 }, (_, n) => call(n, `c${n}`)))
      const holds = calls.filter((hold) => hold !== undefined)
      // On a busy machine a node may return its unused lease too late for one call; the next call gets it.
      await vi.waitFor(
        async () => {
          const one = await call(holds.length, `r${performance.now()}`)
          if (one) holds.push(one)
          expect(holds.length).toBeGreaterThanOrEqual(100)
        },
        { timeout: 60_000, interval: 0 },
      )
      expect(holds).toHaveLength(100)
      await Promise.all(holds.map((hold) => hold.settle(settlementOf(10))))
      await expectUsed(store, namesAt(periodBudgets, BOUNDARY), 1000)
      for (let n = 0; n < count; n += 1) expect(await call(n, `late ${n}`)).toBeUndefined()
    },
  )

  test('a lowered budget of a group applies to the next call of every node, however much the node has borrowed of it', async () => {
    const bank = await open(2)
    const { nodes } = bank
    const call = callOfGroup(bank)
    const holds: OpenHold[] = []
    for (const node of nodes) holds.push(await call(node, 1000, 10))
    // The bank knows of both holds.
    await Promise.all(holds.map((hold) => hold.whenDurable()))
    await Promise.all(nodes.map(({ bankClient }) => bankClient.resync()))
    for (const node of nodes) await expect(call(node, 30, 11)).rejects.toThrow(Unaffordable)
    for (const node of nodes) holds.push(await call(node, 30, 5))
    for (const node of nodes) await expect(call(node, 30, 1)).rejects.toThrow(Unaffordable)
    await Promise.all(holds.map((hold) => hold.settle(settlementOf(1))))
  })

  test('a lowered budget of a group applies to a node whose loan stated no amount, as after its start', async () => {
    const bank = await open(2)
    const [a, b] = bank.nodes
    if (!a || !b) throw new Error('no nodes')
    const call = callOfGroup(bank)
    const first = await call(a, 1000, 10)
    const payer = await findChargedBalances(b.accounts, {
      token: { id: bank.tokenId, budget: undefined },
      user: { id: bank.userId, budget: undefined },
      groups: [{ name: 'default', budget: { amount: 1000, period: 'month' } }],
      startedMs: BOUNDARY,
    })
    await b.accounts.borrowForHold(payer, 100)
    await expect(call(b, 30, 31)).rejects.toThrow(Unaffordable)
    await first.settle(settlementOf(1))
  })

  test('calls on ample budgets ask the bank for a few loans, not for one each', async () => {
    const {
      userId,
      tokenId,
      nodes: [node],
    } = await open(1)
    if (!node) throw new Error('no node')
    const month = { amount: 1_000_000, period: 'month' } as const
    const acquire = vi.spyOn(node.bankClient, 'acquire')
    for (let n = 0; n < 20; n += 1) {
      const hold = await admitted(
        of(node.ledger),
        { tokenId, userId, group: month, user: month },
        { id: `c${n}`, startedMs: BOUNDARY, amount: 10 },
      )
      await hold.settle(settlementOf(10))
    }
    // While the usual hold is still unknown, several loans may be renewed; 22 were, when each call asked.
    expect(acquire.mock.calls.length).toBeLessThan(11)
  })

  test.each([
    { before: 30, after: 1000, grows: 70 },
    { before: 1000, after: 30, grows: 0 },
  ])(
    "a stream grows by what a group's budget allows now, if the budget was $before at its start and is $after",
    async ({ before, after, grows }) => {
      const bank = await open(2)
      const [a, b] = bank.nodes
      if (!a || !b) throw new Error('no nodes')
      const call = callOfGroup(bank)
      const stream = await call(a, before, 30)
      await stream.whenDurable()
      await a.bankClient.resync()
      // Whether it is admitted or refused, it states the new amount.
      const next = await call(b, after, Math.max(1, after - 30)).catch(() => undefined)
      await next?.settle(settlementOf(0))
      await vi.waitFor(() => expect(stream.grow(70)).toBe(grows === 70), { timeout: 60_000, interval: 20 })
      if (grows === 0)
        for (let n = 0; n < 50; n += 1) {
          await delay(5)
          expect(stream.grow(1)).toBe(false)
        }
      // The bank still knows the amount that the latest call stated.
      const rest = after - stream.amount
      const all = await call(b, after, Math.max(rest, 1)).catch(() => undefined)
      expect(all !== undefined).toBe(rest > 0)
      await all?.settle(settlementOf(0))
      await stream.settle(settlementOf(stream.amount))
    },
  )

  test('the spare quota of a budget is lent to other nodes at once, whatever the name of its group', async () => {
    const {
      userId,
      tokenId,
      nodes: [a, b],
    } = await open(2)
    if (!a || !b) throw new Error('no nodes')
    const group = { name: 'big "customers": all', budget: { amount: 1000, period: 'month' } } as const
    const call = async ({ accounts, ledger }: LedgerNode, id: string, amount: number): Promise<OpenHold> => {
      const payer = await findChargedBalances(accounts, {
        token: { id: tokenId, budget: undefined },
        user: { id: userId, budget: undefined },
        groups: [group],
        startedMs: BOUNDARY,
      })
      const { account, budgets } = await accounts.ensureAffordable(payer, amount)
      return ledger.admit(account, amount, { ...factsOf(id), group: group.name }, budgets)
    }
    const first = await call(a, 'a', 100)
    await first.settle({ ...settlementOf(100), group: group.name })
    // Refused as held while a slow machine has not returned the spare quota; clients retry then.
    await vi.waitFor(() => call(b, `b${performance.now()}`, 900), { timeout: 60_000, interval: 50 })
    await expect(call(a, 'c', 1)).rejects.toThrow(QuotaHeldByOtherCalls)
  })

  test('a budget that is lowered to or below its spent and held amounts refuses new calls, and these amounts stay counted', async () => {
    const {
      store,
      userId,
      tokenId,
      nodes: [a, b],
    } = await open(2)
    if (!a || !b) throw new Error('no nodes')
    const group = (amount: number): Terms => ({ tokenId, userId, group: { amount, period: 'week' } })
    const spent = await admitted(of(a.ledger), group(1000), { id: 'a', startedMs: BOUNDARY, amount: 300 })
    const held = await admitted(of(a.ledger), group(1000), { id: 'b', startedMs: BOUNDARY, amount: 300 })
    await spent.settle(settlementOf(300))
    await expectUsed(store, namesAt(group(1000), BOUNDARY), 300)
    const lowered = (id: string, amount: number) =>
      admitted(of(b.ledger), group(650), { id, startedMs: BOUNDARY, amount })
    await expect(lowered('c', 51)).rejects.toThrow(
      /weekly budget of the group default.* 50 remain, 51 are needed.* 300 are spent, 300 are held/,
    )
    await (await lowered('d', 50)).settle(settlementOf(50))
    await held.settle(settlementOf(300))
    await expectUsed(store, namesAt(group(650), BOUNDARY), 650)
    await expect(lowered('e', 1)).rejects.toThrow(BudgetExceeded)
  })
})
