import type { Config } from '../../config/config.ts'
import { StoreUnavailable } from '../../store/store-unavailable.ts'
import { Cells } from './cells.ts'
import { type Family, type FamilyDatabase, readFamily } from './family.ts'
import { FamilyOptions } from './family-options.ts'
import { type Hashes, IdentifierAllocator } from './identifier-allocator.ts'
import { planAccounts, type PlannedAccount } from './plan-accounts.ts'
import { type ConfigurationPlan, planConfiguration } from './plan-configuration.ts'
import type { ReportLine } from './report.ts'
import { openSourceDatabase, type SourceRow } from './source.ts'
import { inspectTarget, openTargetToWrite, type TargetState, targetName, type WritableTarget } from './target.ts'
import { Units } from './units.ts'

/** What is to be imported, and where to. */
export interface ImportOptions {
  /** Of this gateway; its environment says which database is meant. */
  readonly config: Config
  /** A SQLite file, or a `postgres:` URL. */
  readonly source: string
  /** False = nothing is written, and the report says what would be. */
  readonly apply: boolean
  /** Hears how many users are done, of how many. */
  readonly onProgress: (done: number, of: number) => void
}

/** What an import came to, or would come to. */
export interface ImportReport {
  readonly family: Family
  /** The database that was imported into. */
  readonly into: string
  readonly applied: boolean
  readonly lines: readonly ReportLine[]
  /** Users who had a password there, and need a new one. */
  readonly passwords: number
  /** How amounts were converted, in words; undefined where units are worth the same on both sides. */
  readonly converted: string | undefined
  /** A user with role 100 is here after it. */
  readonly hasRoot: boolean
  /** Users that could not be written though they were planned; their lines say why. */
  readonly failed: number
  /**
   * Nodes that run on the database were told, or there can be none; else they see what is new within a
   * minute.
   */
  readonly nodesNotified: boolean
}

/** Everything that would be made. */
interface ImportPlan {
  readonly configuration: ConfigurationPlan
  readonly accounts: readonly PlannedAccount[]
  readonly lines: readonly ReportLine[]
  readonly passwords: number
  readonly units: Units
  readonly hasRoot: boolean
}

/**
 * Reads another gateway's database and plans what carries over; with `apply` it is made: settings in one
 * transaction, channels in one, and each user with its tokens in one. What is there already stays. Rejects
 * with a sentence for the operator.
 */
export async function importFamily(orders: ImportOptions): Promise<ImportReport> {
  const { config, apply } = orders
  const { environment, users: seeds } = config
  const source = await openSourceDatabase(orders.source)
  const family = await readFamily(source).finally(() => source.close())
  if (!apply) {
    const { standing, hashes } = await inspectTarget(environment, seeds)
    const plan = planImport(family, config, standing, hashes)
    return { ...reportOf(family, config, plan), applied: false, failed: 0, nodesNotified: true }
  }
  const target = await openTargetToWrite(environment, seeds)
  try {
    const plan = planImport(family, config, await target.readState(), target.hashes)
    const made = await applyPlan(target, plan, orders.onProgress)
    const nodesNotified = await target.notifyNodes().then(
      () => true,
      () => false,
    )
    return {
      ...reportOf(family, config, { ...plan, ...made }),
      applied: true,
      failed: made.failed,
      nodesNotified,
    }
  } finally {
    await target.close()
  }
}

function planImport(family: FamilyDatabase, config: Config, standing: TargetState, hashes: Hashes): ImportPlan {
  const options = new FamilyOptions(family.options)
  const configuration = planConfiguration(family, options, config, standing.stored)
  const units = new Units(options.text('QuotaPerUnit'), configuration.settings.options.quotaPerUnit)
  const wanted = { userIds: idsOf(family.users), tokenIds: idsOf(family.tokens) }
  const places = new IdentifierAllocator(standing.identifiers, hashes, wanted)
  const { accounts, lines, passwords } = planAccounts(family, {
    units,
    settings: configuration.settings,
    identifiers: places,
    nowSeconds: Math.floor(Date.now() / 1000),
  })
  return {
    configuration,
    accounts,
    lines: [...options.skipped, ...configuration.lines, ...lines],
    passwords,
    units,
    hasRoot: places.hasRoot,
  }
}

async function applyPlan(
  target: WritableTarget,
  { configuration, accounts, lines }: ImportPlan,
  onProgress: ImportOptions['onProgress'],
): Promise<{
  readonly accounts: readonly PlannedAccount[]
  readonly lines: readonly ReportLine[]
  readonly failed: number
}> {
  const { entries, channels } = configuration
  if (entries.length > 0) await target.rows.write('setEntries', { changes: entries })
  if (channels.length > 0) {
    await target.rows.write('createChannels', { channels, createdTime: Math.floor(Date.now() / 1000) })
  }
  await target.reserve(accounts.flatMap(tokenIdsOf).reduce((most, id) => Math.max(most, id), 0))
  const made: PlannedAccount[] = []
  const refused: ReportLine[] = []
  for (const planned of accounts) {
    try {
      await target.rows.write('importAccount', planned.account)
      made.push(planned)
    } catch (error) {
      // What is wrong with one account is no reason to leave out the others; a database that is away is.
      if (error instanceof StoreUnavailable) throw error
      const notes = [`it could not be written: ${error instanceof Error ? error.message : String(error)}`]
      refused.push(...planned.lines.map((line): ReportLine => ({ ...line, fate: 'left', notes })))
    }
    onProgress(made.length, accounts.length)
  }
  return { accounts: made, lines: [...lines, ...refused], failed: accounts.length - made.length }
}

function reportOf(
  { family }: FamilyDatabase,
  { environment }: Config,
  { accounts, lines, passwords, units, hasRoot }: ImportPlan,
): Omit<ImportReport, 'applied' | 'failed' | 'nodesNotified'> {
  return {
    family,
    into: targetName(environment),
    lines: [...lines, ...accounts.flatMap((planned) => planned.lines)],
    passwords,
    converted: units.areSame ? undefined : units.description,
    hasRoot,
  }
}

function tokenIdsOf({ account: { tokens, usedElsewhere } }: PlannedAccount): number[] {
  return [...tokens.map(({ id }) => id), usedElsewhere?.tokenId ?? 0]
}

function idsOf(rows: readonly SourceRow[]): number[] {
  return rows.map((row) => {
    const cells = new Cells(row)
    return cells.lenient(() => cells.integer('id'), 0)
  })
}
