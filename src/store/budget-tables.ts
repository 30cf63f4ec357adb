/** Accounts of budgets, one for each period in which they were used. */
export interface BudgetPeriodsTable {
  /** `BudgetName`. */
  account: string
  /** `BudgetOwner`. */
  owner: string
  /** The budget as it was last used, in quota units; 0 = unknown. */
  amount: number
  used: number
}

/** Budgets that were used up to 80 % or 100 %, written by a trigger in the transaction that did it. */
export interface BudgetCrossingsTable {
  account: string
  /** 80 or 100; each once for each account. */
  percent: number
  amount: number
  used: number
}
