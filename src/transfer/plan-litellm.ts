import {
  type LeftEntry,
  type LitellmChannel,
  type LitellmConfiguration,
  type LitellmFallback,
  type LitellmModel,
  type LitellmPrice,
  type StatedNumber,
} from '@sluice/import/litellm'
import { LITELLM_UNITS_PER_DOLLAR, type LitellmTeam } from '@sluice/import/litellm-database'
import type { LitellmSource } from '@sluice/import/read-source'
import type { SourceRow } from '@sluice/import/source'
import { RowReader, UnreadableValue } from '@sluice/import/row-reader'
import { type Decimal, decimalText, isGreaterDecimal, parseDecimal, ZERO } from '../domain/decimal.ts'
import { endpointByName } from '../domain/endpoints.ts'
import type { ImportKind, ReportLine } from '../domain/import-line.ts'
import type { Json } from '../domain/json.ts'
import { withoutTrailing } from '../domain/without-trailing.ts'
import { GatewayError } from '../errors.ts'
import { channelDefinition } from '../management/channels/channel-definition.ts'
import { addApiVersion, channelType } from '../management/channels/channel-types.ts'
import { builtInPrices } from '../config/built-in-prices.ts'
import { isModelPattern, matchesModelPattern } from '../config/model-patterns.ts'
import { VENDORS } from '../config/vendors.ts'
import { QuotaConverter } from './amounts.ts'
import type { PlannedChannel } from './plan-channels.ts'
import type { PlannedEntry, SourceConfiguration } from './plan-configuration.ts'
import { importedLine } from './report.ts'

/** A configuration without anything in it. */
const NOTHING: LitellmConfiguration = {
  masterKey: undefined,
  channels: [],
  prices: [],
  fallbacks: [],
  accessGroups: new Map(),
  left: [],
  otherSections: [],
}

/**
 * Plans the channels, prices and fallbacks of a LiteLLM configuration, and the groups that its teams become. `missing` says
 * why variables were not read; `unitsHere` is the number of quota units per dollar.
 */
export function planLitellm(
  { configuration = NOTHING, accounts }: LitellmSource,
  missing: string,
  unitsHere: number,
): SourceConfiguration {
  const { channels, prices, fallbacks, left, otherSections } = configuration
  const teams = accounts?.teams ?? []
  const units = new QuotaConverter(LITELLM_UNITS_PER_DOLLAR, unitsHere)
  const planned: PlannedChannel[] = []
  const entries = new Map<string, PlannedEntry>()
  const lines = left.map((entry) => leftLine('channel', entry))
  const stated = new Map<string, TokenPrice[]>()
  for (const price of prices) {
    const read = readPrice(price, missing)
    if (!read) continue
    const others = stated.get(price.model)
    if (!('input' in read)) lines.push(read)
    else if (others) others.push(read)
    else stated.set(price.model, [read])
  }
  for (const [model, all] of stated) entries.set(model, planPrice(model, all))
  for (const { model, kind, models } of fallbacks)
    entries.set(model, withFallback(entries.get(model), model, kind, models))
  const groups = ['default', ...teams.map(({ name }) => name)]
  for (const channel of channels) {
    try {
      planned.push(planChannel(channel, missing, groups))
    } catch (error) {
      if (!(error instanceof UnreadableValue || error instanceof GatewayError)) throw error
      const note = error.message
      lines.push(...channel.models.map(({ model: name }) => leftLine('channel', { name, note })))
    }
  }
  return {
    entries: [...teams.map((team) => planTeam(team, channels.length > 0, units)), ...entries.values()],
    channels: planned,
    left: [
      ...lines,
      ...otherSections.map((entry) => leftLine('option', entry)),
      ...(accounts?.left ?? []).map(({ kind, ...entry }) => leftLine(kind, entry)),
    ],
  }
}

/** The group of a team. Only the keys of the team may use it. */
function planTeam(
  { name, budget, notes }: LitellmTeam,
  hasChannels: boolean,
  units: QuotaConverter,
): PlannedEntry {
  const limit = budget && { amount: units.convertBudget('max_budget', budget.amount), period: budget.period }
  const unserved = hasChannels ? [] : ['no channel serves it yet: add it to the groups of the channels']
  return {
    entry: {
      section: 'groups',
      name,
      value: { ratio: '1', open: false, ...(limit && { budget: limit.amount, budget_period: limit.period }) },
    },
    spent: budget && limit && { budget: limit, budgetUsed: units.convert('spend', budget.used) },
    line: importedLine('group', undefined, name, [...notes, ...unserved]),
  }
}

/** The entry of a model with one more list of models that are tried after it. */
function withFallback(
  present: PlannedEntry | undefined,
  name: string,
  kind: LitellmFallback['kind'],
  models: readonly string[],
): PlannedEntry {
  const { entry, line } = present ?? {
    entry: { section: 'models', name, value: {} },
    line: importedLine('option', undefined, `fallback of ${name}`, []),
  }
  return { entry: { ...entry, value: { ...(entry.value as object), [kind]: models } }, line }
}

/**
 * The names of a channel's models, with their names at the provider. A prefix for all models of a provider becomes the
 * models of the built-in price table.
 */
function modelsOf({ name: channel, models }: LitellmChannel, notes: string[]): readonly LitellmModel[] {
  return models.flatMap((one): readonly LitellmModel[] => {
    if (!one.model.endsWith('/*') || one.upstream !== '*') return [one]
    const prefix = one.model.slice(0, -1)
    const provider = channel.replace(/-\d+$/, '')
    const vendor = VENDORS.find(({ id }) => id === (VENDOR_IDS.get(provider) ?? provider))
    const names = vendor ? builtInPrices().namesOf(vendor) : []
    notes.push(
      names.length === 0
        ? `${one.model}: the models of its provider are not known here; add them to the channel`
        : `${one.model}: the ${names.length} models of the built-in prices; add later ones to the channel`,
    )
    return names.map((name) => ({ ...one, model: prefix + name, upstream: name }))
  })
}

/** Ids of vendors that LiteLLM names in another way. */
const VENDOR_IDS: ReadonlyMap<string, string> = new Map([
  ['gemini', 'google'],
  ['xai', 'x-ai'],
  ['moonshot', 'moonshotai'],
  ['together_ai', 'together'],
  ['fireworks_ai', 'fireworks'],
  ['jina_ai', 'jina'],
])

/**
 * The tokens with the names of the models that both their own list and that of their team allow. Names take the place of
 * patterns and access groups, because limits of a key are names here. A pattern that matches no model here stays, so that
 * the key is not without limits.
 */
export function withModelNames(
  tokens: readonly SourceRow[],
  { channels }: Pick<SourceConfiguration, 'channels'>,
  accessGroups: LitellmConfiguration['accessGroups'] = NOTHING.accessGroups,
): readonly SourceRow[] {
  const served = new Set(channels.flatMap(({ channel }) => channel.declared['models'] as readonly string[]))
  const namesOf = (limit: string): readonly string[] => {
    if (!isModelPattern(limit)) return [limit]
    const matching = [...served].filter((name) => matchesModelPattern(name, limit))
    return matching.length === 0 ? [limit] : matching
  }
  const modelsOf = (limit: string): readonly string[] => (accessGroups.get(limit) ?? [limit]).flatMap(namesOf)
  return tokens.map((token) => {
    const cells = new RowReader(token)
    if (!cells.flag('model_limits_enabled')) return token
    const notes = cells.isAbsent('notes') ? [] : [cells.text('notes')]
    const ofTeam = listed(cells.text('team_models')).flatMap(modelsOf)
    const names = listed(cells.text('model_limits')).flatMap((limit) => {
      const allowed = ofTeam.length === 0 ? modelsOf(limit) : inBoth(modelsOf(limit), ofTeam)
      if (allowed.length === 0) notes.push(`models: its team or user may not use ${limit}`)
      else if (isModelPattern(limit) || accessGroups.has(limit))
        notes.push(
          `models: ${limit} becomes the ${allowed.filter((name) => served.has(name)).length} models here that match it`,
        )
      return allowed
    })
    return {
      ...token,
      model_limits: [...new Set(names)].join(','),
      ...(notes.length > 0 && { notes: notes.join('\n') }),
    }
  })
}

function listed(text: string): readonly string[] {
  return text === '' ? [] : text.split(',')
}

/** The names of two lists that the other list has, too, or matches with a pattern. */
function inBoth(some: readonly string[], others: readonly string[]): readonly string[] {
  const within = (names: readonly string[], limits: readonly string[]): readonly string[] => {
    const exact = new Set(limits)
    const patterns = limits.filter(isModelPattern)
    return names.filter((name) => exact.has(name) || patterns.some((one) => matchesModelPattern(name, one)))
  }
  return [...within(some, others), ...within(others, some)]
}

function planChannel(channel: LitellmChannel, why: string, groups: readonly string[]): PlannedChannel {
  const { name, provider, key, other, project, missing } = channel
  const expanded: string[] = []
  const models = modelsOf(channel, expanded)
  const type = channelType(provider.type)
  if (!type) throw new UnreadableValue('litellm_params.model', 'a provider that this gateway can call')
  const given = channel.address || provider.address || ''
  if (given === '' && type.defaultAddress === '' && (type.provider ?? 'azure') === 'azure')
    throw new UnreadableValue('api_base', 'an address')
  const hasKey = key !== ''
  const isOff = !hasKey && type.keyless !== true
  const notes = [
    ...missing.map((variable) => `the variable ${variable} ${why}`),
    ...(isOff ? ['it is disabled, because it has no key'] : []),
    ...expanded,
    ...new Set(models.flatMap((one) => one.notes)),
  ]
  const definition = channelDefinition(
    {
      name,
      type: type.type,
      models: models.map(({ model }) => model).join(','),
      base_url: given === '' ? '' : provider.keepsAddress ? given : addApiVersion(given, type),
      model_mapping: JSON.stringify(
        Object.fromEntries(
          models.flatMap(({ model, upstream }) => (model === upstream ? [] : [[model, upstream]])),
        ),
      ),
      other,
      status: isOff || missing.length > 0 ? 2 : 1,
    },
    hasKey ? [key] : [],
  )
  const declared = {
    ...definition.declared,
    ...(project !== '' && { project }),
    ...(given !== '' && provider.keepsAddress && { base_url: withoutTrailing(given, '/') }),
    ...limitOf(channel.models, notes),
    ...(groups.length > 1 && { groups }),
  }
  return { channel: { ...definition, declared }, line: importedLine('channel', undefined, name, notes) }
}

/**
 * The rate limit of a channel: the sum over its entries. Omitted with a note if only some entries state a
 * limit.
 */
function limitOf(models: readonly LitellmModel[], notes: string[]): { readonly rate_limit?: Json } {
  const limits = (['rpm', 'tpm'] as const).flatMap((name): [string, number][] => {
    const stated = models.filter((one) => one[name] > 0)
    if (stated.length === 0) return []
    if (stated.length < models.length) {
      notes.push(`${name} does not carry over: it limits some models of the channel only`)
      return []
    }
    if (models.length > 1) notes.push(`${name} is the sum of those of its models`)
    return [[LIMITS[name], stated.reduce((sum, one) => sum + one[name], 0)]]
  })
  return limits.length === 0 ? {} : { rate_limit: { ...Object.fromEntries(limits), window: '1m' } }
}

const LIMITS = { rpm: 'requests', tpm: 'tokens' } as const

/** The price of a token in USD. */
interface TokenPrice {
  readonly input: Decimal
  readonly output: Decimal
}

/** Maximum number of prices that a line names. */
const MAX_NAMED = 5

/**
 * The price of a model from those of its entries, of which LiteLLM charges the one that made the call: the highest of each
 * kind, so that no call is charged less than there.
 */
function planPrice(model: string, stated: readonly TokenPrice[]): PlannedEntry {
  const highest = (kind: keyof TokenPrice): string =>
    perMillion(stated.map((one) => one[kind]).reduce((a, b) => (isGreaterDecimal(b, a) ? b : a)))
  const price = { input: highest('input'), output: highest('output') }
  const different = [
    ...new Set(stated.map(({ input, output }) => `${perMillion(input)} and ${perMillion(output)}`)),
  ]
  const named = [...different.slice(0, MAX_NAMED), ...(different.length > MAX_NAMED ? ['…'] : [])].join('; ')
  const note =
    `price: ${price.input} and ${price.output} USD for a million tokens of input and output, ` +
    `the highest of its entries: ${named}`
  return {
    entry: { section: 'models', name: model, value: { price } },
    line: importedLine('price', undefined, model, different.length > 1 ? [note] : []),
  }
}

/**
 * The price of an entry; a report line if it is incomplete or no number; undefined if none is stated. `missing` says why
 * variables were not read.
 */
function readPrice(price: LitellmPrice, missing: string): TokenPrice | ReportLine | undefined {
  const { model } = price
  const left = (note: string): ReportLine => leftLine('price', { name: model, note })
  const [input, output] = [decimalOf(price.input), decimalOf(price.output)]
  for (const [name, stated, decimal] of [
    ['input_cost_per_token', price.input, input],
    ['output_cost_per_token', price.output, output],
  ] as const)
    if (stated && !decimal) {
      const why = stated.text === undefined ? `, which ${missing}` : ''
      return left(`${name}: expected a number, found ${stated.source}${why}`)
    }
  if (!input && !output) return undefined
  if (!input || (!output && !price.isEmbedding && endpointByName(model) !== 'embeddings'))
    return left('expected both input_cost_per_token and output_cost_per_token')
  return { input, output: output ?? ZERO }
}

function decimalOf(stated: StatedNumber | undefined): Decimal | undefined {
  const text = stated?.text?.trim() ?? ''
  // `.5`, `5.` and `+5` are numbers of YAML, too.
  return text === '' ? undefined : (parseDecimal(text) ?? parseDecimal(Number(text)))
}

function perMillion({ digits, scale }: Decimal): string {
  return decimalText(
    scale >= 6 ? { digits, scale: scale - 6 } : { digits: digits * 10n ** BigInt(6 - scale), scale: 0 },
  )
}

function leftLine(kind: ImportKind, { name, note }: LeftEntry): ReportLine {
  return { kind, id: undefined, name, fate: 'left', notes: [note] }
}
