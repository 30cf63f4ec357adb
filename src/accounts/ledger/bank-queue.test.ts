import { setTimeout as delay } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import type { LoanOutcome } from './account-source.ts'
import { Balance } from './balance.ts'
import { BankQueue } from './bank-queue.ts'
import { NO_BUDGETS, type ChargedBalances } from './charged-balances.ts'
import { refusalByOpenHolds } from './quota-refusal.ts'

const AMOUNT = 100
/** How long the bank takes to answer. */
const ANSWER_MS = 10

/**
 * A queue at a bank that lends nothing until `free` is set, and the calls that it has admitted. `most` is the maximum number
 * of requests at the same time.
 */
function queueAtBank(user: Balance) {
  const bank = { free: false, asked: [] as number[], asking: 0, most: 0 }
  const queue = new BankQueue({
    async borrow(payer, amount, of): Promise<LoanOutcome> {
      bank.asked.push(of?.ticket ?? 0)
      bank.asking += 1
      bank.most = Math.max(bank.most, bank.asking)
      await delay(ANSWER_MS)
      bank.asking -= 1
      if (bank.free) user.remain = 1_000_000
      return bank.free ? { payer } : { payer, order: of?.ticket, refusal: refusalByOpenHolds(payer, amount) }
    },
    leave() {},
  })
  const admitted: number[] = []
  const wait = (tokenId: number): void => {
    const payer: ChargedBalances = {
      account: { token: new Balance(tokenId, 1_000_000), user },
      budgets: NO_BUDGETS,
    }
    queue.add(
      { amount: AMOUNT, admit: () => admitted.push(tokenId), refuse: () => expect.unreachable() },
      payer,
    )
  }
  return { bank, wait, admitted }
}

test('calls of many keys of a user do not ask one after the other, which would delay the next request of the first', async () => {
  const { bank, wait, admitted } = queueAtBank(new Balance(1, 0))
  const keys = Array.from({ length: 300 }, (_, index) => index + 1)
  for (const key of keys) wait(key)
  // All were refused once, and the first ones are asking again.
  await vi.waitFor(() => expect(bank.asked.length).toBeGreaterThan(305), 60_000)
  bank.most = bank.asking
  await vi.waitFor(() => expect(bank.asked.length).toBeGreaterThan(500), 60_000)
  expect(bank.most).toBe(16)
  bank.free = true
  await vi.waitFor(() => expect(admitted).toHaveLength(keys.length), 60_000)
})

test('of calls with the same balances, none asks while the first is refused', async () => {
  const { bank, wait, admitted } = queueAtBank(new Balance(1, 0))
  for (const key of [1, 2, 1, 2, 1]) wait(key)
  // Each asks on arrival; once all were refused, only the first of each key does.
  expect(bank.asked).toEqual([1, 2, 3, 4, 5])
  await vi.waitFor(() => expect(bank.asked.length).toBeGreaterThan(20), 60_000)
  expect(new Set(bank.asked.slice(-6))).toEqual(new Set([1, 2]))
  bank.free = true
  await vi.waitFor(() => expect(admitted).toHaveLength(5), 60_000)
})
