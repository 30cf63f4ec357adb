import type { DatabaseSync, StatementSync } from 'node:sqlite'
import {
  LEASE_ENDING_TOKEN_COLUMNS,
  LEASE_ENDING_USER_COLUMNS,
  TOKEN_COLUMNS,
  USER_COLUMNS,
} from '../account-columns.ts'

/** A change of an account other than a charge. */
export interface AccountChange {
  readonly account: `u:${number}` | `t:${number}`
  /**
   * Whether the leases of the account end, because its balance became lower, its status changed, or it was
   * deleted.
   */
  readonly recalls: boolean
  /** Whether the leases (lent amounts) of the budgets of this user or token end. */
  readonly recallsBudgets: boolean
}

/**
 * Collects changes of accounts made over one connection, by any operation. Temporary triggers of the
 * connection detect the changes; they are not stored in the file. Charges are not collected, although they
 * change `used_quota`.
 */
export class AccountChanges {
  readonly #list: StatementSync
  readonly #clear: StatementSync

  constructor(db: DatabaseSync) {
    db.exec('CREATE TEMP TABLE account_changes (account TEXT, recalls INTEGER, recalls_budgets INTEGER)')
    db.exec(trigger('users', 'u', 'quota', USER_COLUMNS, LEASE_ENDING_USER_COLUMNS))
    db.exec(trigger('tokens', 't', 'remain_quota', TOKEN_COLUMNS, LEASE_ENDING_TOKEN_COLUMNS))
    this.#list = db.prepare(
      'SELECT account, max(recalls) AS recalls, max(recalls_budgets) AS recallsBudgets ' +
        'FROM temp.account_changes GROUP BY account',
    )
    this.#clear = db.prepare('DELETE FROM temp.account_changes')
  }

  /** Returns the accounts that were changed by committed transactions, each once, and clears the list. */
  take(): AccountChange[] {
    const rows = this.#list.all() as {
      account: AccountChange['account']
      recalls: number
      recallsBudgets: number
    }[]
    if (rows.length > 0) this.#clear.run()
    return rows.map(({ account, recalls, recallsBudgets }) => ({
      account,
      recalls: recalls === 1,
      recallsBudgets: recallsBudgets === 1,
    }))
  }
}

function trigger(
  table: 'users' | 'tokens',
  letter: 'u' | 't',
  remain: string,
  columns: readonly string[],
  recalling: readonly string[],
): string {
  const differs = (name: string): string => `new.${name} IS NOT old.${name}`
  const any = (names: readonly string[]): string => names.map(differs).join(' OR ')
  return `CREATE TEMP TRIGGER ${table}_changed AFTER UPDATE ON main.${table}
    WHEN new.used_quota = old.used_quota AND (${any([remain, ...columns])})
    BEGIN
      INSERT INTO account_changes VALUES ('${letter}:' || new.id,
        new.${remain} < old.${remain} OR ${any(recalling)}, ${any(['budget', 'budget_period'])});
    END`
}
