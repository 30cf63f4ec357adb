import { type Kysely, sql } from 'kysely'
import { DEFAULT_MIGRATION_TABLE, type Migration, Migrator } from 'kysely/migration'
import type { Database } from '../schema.ts'
import { accountsAndLedger } from './0001-accounts-and-ledger.ts'
import { usageDays } from './0002-usage-days.ts'
import { management } from './0003-management.ts'
import { bank } from './0004-bank.ts'
import { usagePartitions } from './0005-usage-partitions.ts'
import { freedUsernames } from './0006-freed-usernames.ts'
import { storedResponses } from './0007-stored-responses.ts'
import { mediaUsage } from './0008-media-usage.ts'
import { keptSignatures } from './0009-kept-signatures.ts'
import { responseParts } from './0010-response-parts.ts'
import { budgets } from './0011-budgets.ts'
import { alerts } from './0012-alerts.ts'
import { signIns } from './0013-sign-ins.ts'
import { requestedModels } from './0017-requested-models.ts'
import { usageSeries } from './0018-usage-series.ts'
import { callDetails } from './0019-call-details.ts'
import { auditLog } from './0020-audit-log.ts'
import { callPlaces } from './0022-call-places.ts'
import { expiryOfKeptResponses } from './0023-expiry-of-kept-responses.ts'
import { bytesOfKeptResponses } from './0024-bytes-of-kept-responses.ts'
import { streamedParts } from './0026-streamed-parts.ts'
import { incompletePrices } from './0027-incomplete-prices.ts'
import { searchUnits } from './0029-search-units.ts'
import { operatorTerms } from './0030-operator-terms.ts'
import { keptSums } from './0031-kept-sums.ts'
import { lockedAccounts } from './0033-locked-accounts.ts'
import { signedMessages } from './0034-signed-messages.ts'
import { comparableNames } from './0035-comparable-names.ts'
import { lowQuotasTold } from './0038-low-quotas-told.ts'
import { pricesOfBackgroundCalls } from './0039-prices-of-background-calls.ts'
import { callNotes } from './0041-call-notes.ts'
import type { ColumnTypes } from './column-types.ts'
import { isCurrent, type STEP_NAMES } from './step-names.ts'

function steps(types: ColumnTypes): Readonly<Record<(typeof STEP_NAMES)[number], Migration>> {
  return {
    '0001-accounts-and-ledger': accountsAndLedger(types),
    '0002-usage-days': usageDays(types),
    '0003-management': management(types),
    '0004-bank': bank(types),
    '0005-usage-partitions': usagePartitions(types),
    '0006-freed-usernames': freedUsernames(),
    '0007-stored-responses': storedResponses(types),
    '0008-media-usage': mediaUsage(types),
    '0009-kept-signatures': keptSignatures(types),
    '0010-response-parts': responseParts(types),
    '0011-budgets': budgets(types),
    '0012-alerts': alerts(types),
    '0013-sign-ins': signIns(types),
    '0017-requested-models': requestedModels(types),
    '0018-usage-series': usageSeries(types),
    '0019-call-details': callDetails(types),
    '0020-audit-log': auditLog(types),
    '0022-call-places': callPlaces(types),
    '0023-expiry-of-kept-responses': expiryOfKeptResponses(types),
    '0024-bytes-of-kept-responses': bytesOfKeptResponses(types),
    '0026-streamed-parts': streamedParts(),
    '0027-incomplete-prices': incompletePrices(types),
    '0029-search-units': searchUnits(types),
    '0030-operator-terms': operatorTerms(types),
    '0031-kept-sums': keptSums(types),
    '0033-locked-accounts': lockedAccounts(types),
    '0034-signed-messages': signedMessages(types),
    '0035-comparable-names': comparableNames(types),
    '0038-low-quotas-told': lowQuotasTold(types),
    '0039-prices-of-background-calls': pricesOfBackgroundCalls(types),
    '0041-call-notes': callNotes(types),
  }
}

/**
 * Migrates the schema to this version. All missing steps run in one transaction, so that a crash leaves the
 * schema unchanged. Rejects for a database that a newer version has migrated.
 */
export async function migrateToLatest(db: Kysely<Database>, types: ColumnTypes): Promise<void> {
  if (isCurrent(await stepsRun(db))) return
  const provider = { getMigrations: () => Promise.resolve(locking(steps(types), types)) }
  const { error } = await new Migrator({ db, provider }).migrateToLatest()
  if (error === undefined) return
  const reason = error instanceof Error ? `: ${error.message}` : ''
  throw new Error(`the schema of the database could not be brought up to date${reason}`, { cause: error })
}

/**
 * Lets each step keep away the reports of nodes, which lock the rows of users first. A report that had begun
 * could otherwise go on after a step with a function of the former version, or meet it in a deadlock.
 */
function locking(
  all: Readonly<Record<string, Migration>>,
  { isShared }: ColumnTypes,
): Record<string, Migration> {
  if (!isShared) return { ...all }
  const lock = async (db: Kysely<unknown>): Promise<void> => {
    const { rows } = await sql`select 1 where to_regclass('users') is not null`.execute(db)
    if (rows.length > 0) await sql`lock table users in exclusive mode`.execute(db)
  }
  return Object.fromEntries(
    Object.entries(all).map(([name, step]) => [
      name,
      {
        async up(db) {
          await lock(db)
          await step.up(db)
        },
      } satisfies Migration,
    ]),
  )
}

async function stepsRun(db: Kysely<Database>): Promise<string[]> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true })
  if (!tables.some((table) => table.name === DEFAULT_MIGRATION_TABLE)) return []
  const rows = await db
    .withTables<{ kysely_migration: { name: string } }>()
    .selectFrom(DEFAULT_MIGRATION_TABLE)
    .select('name')
    .execute()
  return rows.map((row) => row.name)
}
