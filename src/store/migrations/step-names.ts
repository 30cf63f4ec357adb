/** Names of all migration steps, in order. A released step never changes; changes need a new step. */
export const STEP_NAMES = [
  '0001-accounts-and-ledger',
  '0002-usage-days',
  '0003-management',
  '0004-bank',
  '0005-usage-partitions',
  '0006-freed-usernames',
  '0007-stored-responses',
  '0008-media-usage',
  '0009-kept-signatures',
  '0010-response-parts',
  '0011-budgets',
  '0012-alerts',
  '0013-sign-ins',
  '0017-requested-models',
  '0018-usage-series',
  '0019-call-details',
  '0020-audit-log',
  '0022-call-places',
  '0023-expiry-of-kept-responses',
  '0024-bytes-of-kept-responses',
  '0026-streamed-parts',
  '0027-incomplete-prices',
  '0029-search-units',
  '0030-operator-terms',
  '0031-kept-sums',
  '0033-locked-accounts',
  '0034-signed-messages',
  '0035-comparable-names',
  '0038-low-quotas-told',
  '0039-prices-of-background-calls',
  '0041-call-notes',
] as const

/**
 * Tells whether the steps that have run are all steps. Throws a sentence for the operator if a newer version
 * has migrated the database.
 */
export function isCurrent(run: readonly string[]): boolean {
  const known = new Set<string>(STEP_NAMES)
  const unknown = run.filter((name) => !known.has(name)).sort()
  if (unknown.length > 0) {
    throw new Error(
      `this database was changed by a newer version of sluice (its schema has "${unknown.join('", "')}", ` +
        `this version knows up to "${STEP_NAMES.at(-1)}"): start that version, or go back to a copy made before it`,
    )
  }
  return run.length === STEP_NAMES.length
}
