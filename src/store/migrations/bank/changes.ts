import {
  OPERATOR_COLUMNS,
  RECALLING_TOKEN_COLUMNS,
  RECALLING_USER_COLUMNS,
  TERM_COLUMNS,
  TOKEN_COLUMNS,
  USER_COLUMNS,
} from '../../account-columns.ts'
import { quoted } from './bank-function.ts'

/**
 * Returns triggers that notify every node of changes of accounts that the bank's functions did not make.
 * (Those change a balance only together with `used_quota` or `leased`.) A lower balance, a new status and a
 * deletion recall the leases: the epoch of the account rises by one, and all leases end.
 */
export function changes(schema: string): readonly string[] {
  return triggers(schema, [], '')
}

/** Returns the triggers with budgets and rate limits, in place of those; another budget ends its leases. */
export function changesWithBudgets(schema: string): readonly string[] {
  return triggers(schema, TERM_COLUMNS, RECALL_BUDGETS)
}

/** Returns the triggers with the terms of tokens that operators gave, in place of those. */
export function changesWithOperatorTerms(schema: string): readonly string[] {
  return triggers(schema, TERM_COLUMNS, RECALL_BUDGETS, OPERATOR_COLUMNS)
}

const RECALL_BUDGETS = `
  if new.budget is distinct from old.budget or new.budget_period is distinct from old.budget_period then
    perform bank_recall_budgets(LETTER || new.id);
  end if;`

function triggers(
  schema: string,
  terms: readonly string[],
  afterRecall: string,
  ofTokens: readonly string[] = [],
): readonly string[] {
  return [
    ...changeTrigger(schema, {
      table: 'users',
      letter: 'u',
      remain: 'quota',
      columns: [...USER_COLUMNS, ...terms],
      afterRecall,
      recallingColumns: RECALLING_USER_COLUMNS,
    }),
    ...changeTrigger(schema, {
      table: 'tokens',
      letter: 't',
      remain: 'remain_quota',
      columns: [...TOKEN_COLUMNS, ...terms, ...ofTokens],
      afterRecall,
      recallingColumns: RECALLING_TOKEN_COLUMNS,
    }),
  ]
}

interface WatchedTable {
  readonly table: 'users' | 'tokens'
  readonly letter: 'u' | 't'
  readonly remain: string
  readonly columns: readonly string[]
  readonly recallingColumns: readonly string[]
  readonly afterRecall: string
}

function changeTrigger(
  schema: string,
  { table, letter, remain, columns: seen, recallingColumns: grave, afterRecall }: WatchedTable,
): readonly string[] {
  const differs = (name: string): string => `new.${name} is distinct from old.${name}`
  return [
    `create or replace function bank_heed_${table}() returns trigger language plpgsql security definer
       set search_path = pg_catalog, ${quoted(schema)}, pg_temp as $bank$
begin
  if new.${remain} < old.${remain} or ${grave.map(differs).join(' or ')} then
    new.leased := 0;
    new.epoch := old.epoch + 1;
    delete from leases where account = '${letter}:' || new.id;
  end if;${afterRecall.replace('LETTER', `'${letter}:'`)}
  perform bank_announce('${letter}:' || new.id);
  return new;
end
$bank$`,
    // Nobody else may attach it to a table, as it runs with its owner's rights.
    `revoke all on function bank_heed_${table}() from public`,
    `drop trigger if exists bank_heed on ${table}`,
    `create trigger bank_heed before update on ${table} for each row
       when (new.used_quota = old.used_quota and new.leased = old.leased
         and (${[remain, ...seen].map(differs).join(' or ')}))
       execute function bank_heed_${table}()`,
  ]
}
