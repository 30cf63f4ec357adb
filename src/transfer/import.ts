import type { OtherGatewayDatabase } from '@sluice/import/other-gateway'
import { RowReader } from '@sluice/import/row-reader'
import type { SourceRow } from '@sluice/import/source'
import type { Config } from '../config/config.ts'
import { StoreUnavailable } from '../store/store-unavailable.ts'
import { ImportedAmountSums, QuotaConverter } from './amounts.ts'
import { type ConfigurationPlan, planConfiguration } from './plan-configuration.ts'
import { type IdentifierHashes, IdentifierAllocator } from './identifier-allocator.ts'
import { planAccounts, type PlannedAccount, type ListedNames } from './plan-accounts.ts'
import type { ImportSourceName, ReportLine } from '../domain/import-line.ts'
import { type InterpretedSource, readImport } from './interpret-source.ts'
import {
  inspectTarget,
  openTargetToWrite,
  type TargetState,
  targetName,
  type WritableTarget,
  importOrigin,
} from './target.ts'

/** Options of an import. */
export interface ImportOptions {
  /** Configuration of this gateway; its environment names the target database. */
  readonly config: Config
  /** What to import: a file, or the address of a database server. */
  readonly source: string
  /**
   * Names that the operator listed: users and teams whose keys are added to existing users and groups, and
   * users who keep their role.
   */
  readonly stated: ListedNames
  /** Address of the database of a LiteLLM proxy, in addition to its configuration. */
  readonly database?: string | undefined
  /** Whether a source's server gets the password in clear if it asks for it over an unencrypted connection. */
  readonly insecure?: boolean | undefined
  /** Whether the import is written to the database; otherwise the report only says what would be imported. */
  readonly apply: boolean
  /** Called after each user with the number of users that are done, and the number of all users. */
  readonly onProgress: (done: number, total: number) => void
}

/** Result of an import, or of its dry run. */
export interface ImportReport {
  readonly family: ImportSourceName
  /** Description of the target database. */
  readonly into: string
  readonly applied: boolean
  readonly lines: readonly ReportLine[]
  /**
   * Number of imported users who need a new password, because this gateway cannot check the imported hash.
   */
  readonly passwords: number
  /** Sentence about the conversion of amounts; undefined if source and target use the same quota unit. */
  readonly converted: string | undefined
  /** Whether the target has a root user after the import. */
  readonly hasRoot: boolean
  /** Number of planned users that could not be written; their lines in the report say why. */
  readonly failed: number
  /** Whether running nodes were notified; otherwise they see the changes within a minute. */
  readonly nodesNotified: boolean
}

/** Everything that an import writes. */
export interface ImportPlan {
  readonly configuration: ConfigurationPlan
  readonly accounts: readonly PlannedAccount[]
  readonly lines: readonly ReportLine[]
  readonly passwords: number
  readonly units: QuotaConverter
  readonly hasRoot: boolean
}

/**
 * Reads another gateway's database and plans the import; with `apply`, writes it: settings in one
 * transaction, channels in one, and each user with its tokens in one. Rows that exist already stay unchanged.
 * Rejects with a sentence for the operator.
 */
export async function importOtherGateway(options: ImportOptions): Promise<ImportReport> {
  const { config, apply, stated } = options
  const { environment, users: seeds } = config
  const source = await readImport(options.source, {
    variable: (name) => environment.variables.get(name),
    missing: 'is not set in the environment',
    sendsClearPassword: options.insecure,
    database: options.database,
    unitsHere: config.settings.options.quota_per_unit,
  })
  requireNames(source.accounts, stated)
  if (!apply) {
    const { state, hashes } = await inspectTarget(environment, seeds)
    const plan = planImport(source, options, state, hashes)
    return { ...reportOf(source, config, plan), applied: false, failed: 0, nodesNotified: true }
  }
  const target = await openTargetToWrite(environment, seeds)
  try {
    const plan = planImport(source, options, await target.readState(), target.hashes)
    const made = await applyPlan(target, plan, options.onProgress)
    const nodesNotified = await target.notifyNodes().then(
      () => true,
      () => false,
    )
    return {
      ...reportOf(source, config, { ...plan, ...made }),
      applied: true,
      failed: made.failed,
      nodesNotified,
    }
  } finally {
    await target.close()
  }
}

/** Plans what an import writes. */
export function planImport(
  { configuration: statedHere, accounts: read, quotaUnit, left }: InterpretedSource,
  { config, stated }: Pick<ImportOptions, 'config' | 'stated'>,
  state: TargetState,
  hashes: IdentifierHashes,
): ImportPlan {
  const configuration = planConfiguration(statedHere, config, state.stored)
  const units = new QuotaConverter(quotaUnit, configuration.settings.options.quota_per_unit)
  const wanted = { userIds: idsOf(read.users), tokenIds: idsOf(read.tokens) }
  const identifiers = new IdentifierAllocator(state.identifiers, hashes, wanted)
  const { accounts, lines, passwords } = planAccounts(read, {
    units,
    settings: configuration.settings,
    identifiers,
    sums: new ImportedAmountSums(state.identifiers.sums),
    stated,
    unlikeGroups: configuration.unlikeGroups,
    nowSeconds: Math.floor(Date.now() / 1000),
  })
  return {
    configuration,
    accounts,
    lines: [...left, ...configuration.lines, ...lines],
    passwords,
    units,
    hasRoot: identifiers.hasRoot,
  }
}

// Throws if the operator listed a name that the source does not have: a mistyped name would otherwise be
// ignored.
function requireNames(
  { users, tokens }: Pick<OtherGatewayDatabase, 'users' | 'tokens'>,
  stated: ListedNames,
): void {
  const namesIn = (rows: readonly SourceRow[], column: string): readonly string[] =>
    rows.map((row) => {
      const cells = new RowReader(row)
      return cells.lenient(() => cells.text(column), '')
    })
  const role = new Set(namesIn(users, 'username'))
  const names = { role, merge: new Set([...role, ...namesIn(tokens, 'team_group')]) }
  for (const [option, wanted] of Object.entries(stated) as [keyof ListedNames, ReadonlySet<string>][])
    for (const name of wanted)
      if (!names[option].has(name))
        throw new Error(
          `--${option} ${name}: ${option === 'merge' ? 'no user and no team' : 'no user'} there has that name`,
        )
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
  const origin = importOrigin()
  const created_time = Math.floor(Date.now() / 1000)
  const spent = configuration.spent.map((one) => ({ ...one, nowSeconds: created_time }))
  if (entries.length > 0) await target.rows.write('setStoredSettings', { changes: entries, spent, origin })
  if (channels.length > 0) {
    await target.rows.write('createChannels', {
      channels,
      created_time,
      origin,
    })
  }
  await target.reserve(highestTokenId(accounts))
  const made: PlannedAccount[] = []
  const refused: ReportLine[] = []
  for (const planned of accounts) {
    try {
      await target.rows.write('importAccount', { ...planned.account, origin })
      made.push(planned)
    } catch (error) {
      // An error of one account does not stop the others; an unavailable database does.
      if (error instanceof StoreUnavailable) throw error
      const notes = [`it could not be written: ${error instanceof Error ? error.message : String(error)}`]
      refused.push(...planned.lines.map((line): ReportLine => ({ ...line, fate: 'left', notes })))
    }
    onProgress(made.length, accounts.length)
  }
  return { accounts: made, lines: [...lines, ...refused], failed: accounts.length - made.length }
}

function reportOf(
  { name: family }: InterpretedSource,
  { environment }: Config,
  { accounts, lines, passwords, units, hasRoot }: ImportPlan,
): Omit<ImportReport, 'applied' | 'failed' | 'nodesNotified'> {
  return {
    family,
    into: targetName(environment),
    lines: [...lines, ...accounts.flatMap((planned) => planned.lines)],
    passwords,
    // Amounts of LiteLLM are dollars.
    converted: units.areSame || family === 'litellm' ? undefined : units.description,
    hasRoot,
  }
}

/** The highest id of the tokens that the import writes. */
export function highestTokenId(accounts: readonly PlannedAccount[]): number {
  return accounts.flatMap(tokenIdsOf).reduce((max, id) => Math.max(max, id), 0)
}

function tokenIdsOf({ account: { tokens, usedElsewhere } }: PlannedAccount): number[] {
  return [...tokens.map(({ id }) => id), usedElsewhere?.tokenId ?? 0]
}

function idsOf(rows: readonly SourceRow[]): number[] {
  return rows.map((row) => {
    const cells = new RowReader(row)
    return cells.lenient(() => cells.integer('id'), 0)
  })
}
