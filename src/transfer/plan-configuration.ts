import { isDeepStrictEqual } from 'node:util'
import type { OtherGatewayDatabase } from '@sluice/import/other-gateway'
import { RowReader, UnreadableValue } from '@sluice/import/row-reader'
import type { Config } from '../config/config.ts'
import { isDeclaredSetting, mergeStoredSettings } from '../config/merge-stored-settings.ts'
import { type Decimal, decimalText } from '../domain/decimal.ts'
import { type RatioName, type Ratios, ratiosJson } from '../domain/ratios.ts'
import type { ChannelDefinition } from '../domain/records/channel.ts'
import type { Settings, StoredConfiguration, StoredSetting } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'
import { toStoredChannel } from '../management/channels/channel-definition.ts'
import { parseDecimalValue, parseJsonMapping } from '../management/settings/decimal-map.ts'
import { settingOf } from '../management/settings/list-options.ts'
import { RATIO_OPTIONS } from '../management/settings/option-mappings.ts'
import type { GroupSpending } from '../store/operations/configuration.ts'
import { planChannels, type PlannedChannel, splitList } from './plan-channels.ts'
import type { ImportOutcome, ReportLine } from '../domain/import-line.ts'
import { importedLine } from './report.ts'

/** The settings and channels to write, and the complete settings after that. */
export interface ConfigurationPlan {
  readonly entries: readonly StoredSetting[]
  readonly spent: readonly Omit<GroupSpending, 'nowSeconds'>[]
  readonly channels: readonly ChannelDefinition[]
  readonly settings: Settings
  /** Names of groups in the source that are groups here with another ratio or budget, or open. */
  readonly unlikeGroups: ReadonlySet<string>
  readonly lines: readonly ReportLine[]
}

/** Settings and channels as the source states them, before they are compared with those of this gateway. */
export interface SourceConfiguration {
  readonly entries: readonly PlannedEntry[]
  readonly channels: readonly PlannedChannel[]
  /** Report lines about what is not imported. */
  readonly left: readonly ReportLine[]
}

/** Reads the groups, prices, options and channels of a source. */
export function configurationIn(
  source: OtherGatewayDatabase,
  options: OtherGatewayOptions,
): SourceConfiguration {
  const scalars = planOptions(options)
  const { channels, left } = planChannels(source)
  return {
    entries: [...planGroups(source, options), ...planPrices(options), ...scalars.entries],
    channels,
    left: [...left, ...scalars.left],
  }
}

/**
 * Plans groups, prices, options and channels. Validates them with the schema of gateway.yaml, together with
 * the file and the stored settings. Entries that exist already stay unchanged.
 */
export function planConfiguration(
  { entries: wanted, channels: stated, left }: SourceConfiguration,
  config: Config,
  stored: StoredConfiguration,
): ConfigurationPlan {
  const entries = splitExisting(wanted, ({ entry }) => entryIsThere(entry, config, stored))
  const channels = splitExisting(stated, ({ channel }) => channelIsThere(channel, config, stored))
  const { settings, refused } = effectiveSettings(config, stored, entries.fresh, channels.fresh)
  const unlike = new Set(entries.there.filter(({ entry }) => isUnlikeGroup(entry, settings)))
  const [madeEntries, refusedEntries] = splitRefused(entries.fresh, ({ entry }) =>
    refused.get(`${entry.section} ${entry.name}`),
  )
  const [madeChannels, refusedChannels] = splitRefused(channels.fresh, ({ channel }) =>
    refused.get(`channels ${channel.name}`),
  )
  return {
    entries: madeEntries.map(({ entry }) => entry),
    spent: madeEntries.flatMap(({ entry, spent }) => (spent ? [{ group: entry.name, ...spent }] : [])),
    channels: madeChannels.map(({ channel }) => channel),
    settings,
    unlikeGroups: new Set([...unlike].map(({ entry }) => entry.name)),
    lines: [
      ...[...madeEntries, ...madeChannels].map(({ line }) => line),
      ...entries.there.map((one) =>
        withOutcome(one.line, 'there', one.spent && unlike.has(one) ? [BUDGET_STAYS_BEHIND] : []),
      ),
      ...channels.there.map(({ line }) => withOutcome(line, 'there', [])),
      ...refusedEntries,
      ...refusedChannels,
      ...left,
      ...unpricedModels(madeChannels, settings),
    ],
  }
}

function splitExisting<Planned>(
  planned: readonly Planned[],
  isThere: (one: Planned) => boolean,
): { readonly fresh: readonly Planned[]; readonly there: readonly Planned[] } {
  return { fresh: planned.filter((one) => !isThere(one)), there: planned.filter(isThere) }
}

function splitRefused<Planned extends { readonly line: ReportLine }>(
  planned: readonly Planned[],
  refusal: (one: Planned) => string | undefined,
): [made: readonly Planned[], refused: readonly ReportLine[]] {
  const refused = planned.flatMap((one) => {
    const message = refusal(one)
    return message === undefined ? [] : [withOutcome(one.line, 'left', [message])]
  })
  return [planned.filter((one) => refusal(one) === undefined), refused]
}

function withOutcome(
  { kind, id, name }: ReportLine,
  fate: ImportOutcome,
  notes: readonly string[],
): ReportLine {
  return { kind, id, name, fate, notes }
}

function entryIsThere(
  { section, name }: StoredSetting,
  { fileNode: tree }: Config,
  stored: StoredConfiguration,
): boolean {
  return (
    isDeclaredSetting(tree, section, name) ||
    stored.entries.some((one) => one.section === section && one.name === name)
  )
}

const BUDGET_STAYS_BEHIND = 'the group here stays as it is: the budget of the team does not carry over'

function isUnlikeGroup({ section, name, value }: StoredSetting, { groups }: Settings): boolean {
  const here = section === 'groups' && groups.get(name)
  if (!here) return false
  const budget = here.budget && { budget: here.budget.amount, budget_period: here.budget.period }
  return !isDeepStrictEqual(value, { ratio: decimalText(here.ratio), open: here.open, ...budget })
}

function channelIsThere(
  { name }: ChannelDefinition,
  { settings }: Config,
  stored: StoredConfiguration,
): boolean {
  return [...settings.channels, ...stored.channels].some((one) => one.name === name)
}

function effectiveSettings(
  config: Config,
  stored: StoredConfiguration,
  entries: readonly PlannedEntry[],
  channels: readonly PlannedChannel[],
): { readonly settings: Settings; readonly refused: ReadonlyMap<string, string> } {
  const next: StoredConfiguration = {
    entries: [...stored.entries, ...entries.map(({ entry }) => entry)],
    channels: [...stored.channels, ...channels.map(({ channel }) => toStoredChannel(channel))],
  }
  const { settings, ignored: leftOut } = mergeStoredSettings(config, next, stored)
  return {
    settings,
    refused: new Map(leftOut.map(({ section, name, message }) => [`${section} ${name}`, message])),
  }
}

/** Reports the models of imported channels that have no price, because calls to them will be refused. */
function unpricedModels(channels: readonly PlannedChannel[], settings: Settings): ReportLine[] {
  if (settings.options.unpriced_models === 'free') return []
  const models = new Set(channels.flatMap(({ channel }) => channel.declared['models'] as readonly string[]))
  return [...models]
    .filter((model) => !model.includes('*') && settings.models.get(model).price === undefined)
    .map((name) => ({
      kind: 'price',
      id: undefined,
      name,
      fate: 'left',
      notes: ['no price is saved there, and none is built in here: calls to it are refused until it has one'],
    }))
}

/** Plans the price ratios of every model that an option names, with exact decimals. */
function planPrices(options: OtherGatewayOptions): PlannedEntry[] {
  const models = new Map<string, { [Name in RatioName]?: Ratios[Name] }>()
  for (const [option, ratio] of RATIO_OPTIONS) {
    for (const [model, value] of options.decimals(option) ?? []) {
      models.set(model, { ...models.get(model), [ratio]: value })
    }
  }
  return [...models].flatMap(([name, ratios]): PlannedEntry[] => {
    const value = ratiosJson(ratios)
    if (value === undefined) return []
    const notes =
      ratios.model && !ratios.completion && !ratios.price
        ? [
            'nothing is saved there for its output: that follows the built-in price here, else it costs as much as input',
          ]
        : []
    return [
      { entry: { section: 'ratios', name, value }, line: importedLine('price', undefined, name, notes) },
    ]
  })
}

/** An option that is not imported, because amounts are converted to the quota unit of this gateway. */
const QUOTA_UNIT_OPTION = 'QuotaPerUnit'

const READ_ELSEWHERE: ReadonlySet<string> = new Set([
  QUOTA_UNIT_OPTION,
  'GroupRatio',
  'UserUsableGroups',
  ...RATIO_OPTIONS.keys(),
])

/** What takes the place of fallbacks of a key to further groups. */
export const NO_GROUP_RETRY =
  'a key has one group here, so that no call falls back to channels of another: add these channels to its group, or name fallbacks of a model (models.NAME.fallback)'

const CHANNEL_RESTS = 'a channel that fails rests here by itself, and is tried again'

/** Options about prices and permissions that this gateway does not have, with an explanation each. Options about channel retries are among them. */
const UNSUPPORTED_OPTIONS: ReadonlyMap<string, string> = new Map([
  ['GroupGroupRatio', 'a group has one ratio here, for all users'],
  ['AutoGroups', 'a token has one group here; "auto" becomes the group of its user'],
  ['ModelRequestRateLimitEnabled', 'rate limits are set in gateway.yaml (rate_limits)'],
  ['SensitiveWords', 'declare a guard with these words (guards in gateway.yaml)'],
  [
    'AutomaticRetryStatusCodes',
    'which errors another channel is tried for is fixed here; status_code_mapping of a channel changes the status of one',
  ],
  ['AutomaticDisableStatusCodes', CHANNEL_RESTS],
  ['AutomaticDisableKeywords', CHANNEL_RESTS],
  ['AutomaticDisableChannelEnabled', CHANNEL_RESTS],
  ['AutomaticEnableChannelEnabled', CHANNEL_RESTS],
  ['DefaultUseAutoGroup', NO_GROUP_RETRY],
  ['QuotaForNewUser', 'users are created by administrators here'],
  ['ImageRatio', 'images are charged as the tokens that the provider reports'],
  ['AudioRatio', 'audio is charged as the tokens that the provider reports'],
])

/**
 * Plans the options with a single value. Options that this gateway lacks are reported: the important ones
 * with an explanation, the others by name.
 */
function planOptions(options: OtherGatewayOptions): {
  readonly entries: readonly PlannedEntry[]
  readonly left: readonly ReportLine[]
} {
  const entries: PlannedEntry[] = []
  const left: ReportLine[] = []
  const others: string[] = []
  for (const name of options.names) {
    const scalar = settingOf(name)
    if (READ_ELSEWHERE.has(name)) continue
    if (scalar) {
      const value = options.text(name)
      if (value === undefined || value === '') continue
      const line = importedLine('option', undefined, name, [])
      entries.push({ entry: { section: 'options', name: scalar.name, value }, line })
      continue
    }
    const missed = UNSUPPORTED_OPTIONS.get(name)
    if (missed === undefined) others.push(name)
    else left.push({ kind: 'option', id: undefined, name, fate: 'left', notes: [missed] })
  }
  if (others.length > 0) {
    const name = others.length === 1 ? '1 other' : `${others.length} others`
    const note = `not supported: ${others.toSorted().join(', ')}`
    left.push({ kind: 'option', id: undefined, name, fate: 'left', notes: [note] })
  }
  return { entries, left }
}

const RATIO_ONE: Decimal = { digits: 1n, scale: 0 }

/** Groups that new-api opens to everybody by default; one-api has no open groups. */
const DEFAULT_OPEN_GROUPS = { 'new-api': ['default', 'vip'], 'one-api': [] } as const

/**
 * Special group name with which the other gateway chooses a group automatically; this gateway does not
 * support that.
 */
export const AUTO_GROUP = 'auto'

/** A settings entry to be written, with its report line. */
export interface PlannedEntry {
  readonly entry: StoredSetting
  readonly line: ReportLine
  /** What a group spent in the present period of its budget. */
  readonly spent?: Omit<GroupSpending, 'group' | 'nowSeconds'> | undefined
}

/**
 * Plans the groups that have a ratio, and the groups that only users, tokens or channels name, which get
 * ratio 1.
 */
function planGroups(source: OtherGatewayDatabase, options: OtherGatewayOptions): PlannedEntry[] {
  const ratios = options.decimals('GroupRatio') ?? new Map<string, Decimal>()
  const usable = options.mapping('UserUsableGroups')
  const open = new Set<string>(usable ? usable.keys() : DEFAULT_OPEN_GROUPS[source.family])
  const names = new Set([...ratios.keys(), ...namedIn(source)])
  names.delete(AUTO_GROUP)
  return [...names].map((name) => {
    const ratio = ratios.get(name)
    const notes = ratio ? [] : ['it has no ratio there, which means 1']
    return {
      entry: {
        section: 'groups',
        name,
        value: { ratio: decimalText(ratio ?? RATIO_ONE), open: name === 'default' || open.has(name) },
      },
      line: { kind: 'group', id: undefined, name, fate: 'carried', notes },
    }
  })
}

function namedIn({ users, tokens, channels }: OtherGatewayDatabase): string[] {
  const named = [...users, ...tokens, ...channels].flatMap((row) => {
    const cells = new RowReader(row)
    return splitList(cells.lenient(() => cells.text('group'), ''))
  })
  return [...new Set(named)].filter(
    (name) => name.length <= 200 && !/\p{Cc}/u.test(name) && name !== '__proto__',
  )
}

/** The options of another gateway. An unreadable option is skipped with a report line. */
export class OtherGatewayOptions {
  /** Report lines about options that could not be read. */
  readonly skipped: ReportLine[] = []
  readonly #options: ReadonlyMap<string, unknown>

  constructor(options: ReadonlyMap<string, unknown>) {
    this.#options = options
  }

  /** Names of all saved options. */
  get names(): readonly string[] {
    return [...this.#options.keys()]
  }

  /** Reads an option as text; undefined if it was never saved or is not a text. */
  text(name: string): string | undefined {
    if (!this.#options.has(name)) return undefined
    try {
      return new RowReader({ value: this.#options.get(name) }).text('value').trim()
    } catch (error) {
      if (!(error instanceof UnreadableValue)) throw error
      this.#skip(name, error.message)
      return undefined
    }
  }

  /** Reads an option that holds a JSON object; undefined if there is none. */
  mapping(name: string): ReadonlyMap<string, unknown> | undefined {
    const text = this.text(name)
    if (text === undefined || text === '') return undefined
    try {
      return parseJsonMapping(name, text, (entry, { message }) => this.#skip(`${name}: ${entry}`, message))
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      this.#skip(name, error.message)
      return undefined
    }
  }

  /** Reads an option that maps names to decimal numbers, exactly. Values that are not numbers are skipped. */
  decimals(name: string): ReadonlyMap<string, Decimal> | undefined {
    const mapping = this.mapping(name)
    if (!mapping) return undefined
    const decimals = new Map<string, Decimal>()
    for (const [entry, value] of mapping) {
      const decimal = parseDecimalValue(value)
      if (decimal) decimals.set(entry, decimal)
      else this.#skip(`${name}: ${entry}`, 'expected a number from 0 to 1000000')
    }
    return decimals
  }

  #skip(name: string, note: string): void {
    this.skipped.push({ kind: 'option', id: undefined, name, fate: 'left', notes: [note] })
  }
}
