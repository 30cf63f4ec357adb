import type { Patch } from '../../fixtures/patch.ts'

/** Reports are rare, so that different orders occur in every storm. */
export const RARE_REPORTS: Patch = {
  file: 'src/accounts/ledger/bank-client.ts',
  text: 'const REPORT_MS = 200',
  by: 'const REPORT_MS = 1500',
}
/** Returns a recalled lease at once, before the report, including spent quota that is not reported yet. */
export const RELEASE_FIRST: readonly Patch[] = [
  {
    file: 'src/accounts/ledger/bank-client.ts',
    text: '    const isUrgent = this.#outbox.isFull || this.#flushes.size > 0',
    by: '    if (this.#isReportRequested) await this.#releaseSpare(nowMs)\n    const isUrgent = this.#outbox.isFull || this.#flushes.size > 0',
  },
  {
    file: 'src/accounts/ledger/leased-balance.ts',
    text: 'return Math.max(0, this.held + this.#unreported)',
    by: 'return Math.max(0, this.held)',
  },
  // The report follows so late that other nodes can spend what was returned.
  {
    file: 'src/accounts/ledger/bank-client.ts',
    text: 'const REQUESTED_MS = 20',
    by: 'const REQUESTED_MS = 1000',
  },
]
/** Loses the response to every third report, so that the report is repeated. */
export const LOST_ANSWERS: readonly Patch[] = [
  {
    file: 'src/accounts/ledger/bank-client.ts',
    text: '      const known = new Set<string>(states',
    by: "      if (entries.length > 0 && Math.random() < 1 / 3) throw new StoreUnavailable('lost')\n      const known = new Set<string>(states",
  },
]
/** Counts a repeated report again: neither the last report nor the rows of the log show what is charged. */
export const NOT_IDEMPOTENT: readonly Patch[] = [
  {
    file: 'src/store/postgres/bank/charge.sql',
    text: 'select given.* from given join logged using (id)',
    by: 'select given.* from given',
  },
  {
    file: 'src/store/postgres/bank/apply.sql',
    text: 'if cardinality(again) > 0 then',
    by: 'if false then',
  },
]
/** Ignores holds that an earlier run left open. */
export const NO_RECOVERY: Patch = {
  file: 'src/gateway/open-shared-ledger.ts',
  text: 'const recovered = await ledger.recover()',
  by: 'const recovered = { count: 0, quota: 0 }',
}

/** Lends budgets without checking what is used of them or lent to others. */
export const UNBOUNDED_BUDGETS: readonly Patch[] = [
  {
    file: 'src/store/postgres/bank/borrow.sql',
    text: 'where bank_free(w.account) < w.need);',
    by: "where not w.account like 'b:%' and bank_free(w.account) < w.need);",
  },
  {
    file: 'src/store/postgres/bank/borrow.sql',
    text: 'bank_share(b.amount - b.used - b.leased, w.need,\n            bank_useful(b.account, w.need, w.most)) as gets',
    by: 'w.most as gets',
  },
  // Nodes do not spend what they see to be lent beyond the budget.
  {
    file: 'src/accounts/ledger/leased-balance.ts',
    text: 'this.remain - this.held + Math.min(0, this.#bankFree)',
    by: 'this.remain - this.held',
  },
]
/** Charges calls to balances only. */
export const UNCHARGED_BUDGETS: Patch = {
  file: 'src/store/postgres/bank/charge.sql',
  text: 'update budget_periods b set used = b.used + spent.quota, leased',
  by: 'update budget_periods b set leased',
}
