import { withoutTrailing } from '../domain/without-trailing.ts'
import { parseYamlDocument } from '../config/document.ts'
import {
  childOfNode,
  isMapping,
  itemsOfNode,
  keysOfNode,
  type YamlNode,
  YamlScalar,
} from '../config/yaml-node.ts'
import { type Decimal, decimalText, parseDecimal } from '../domain/decimal.ts'
import { endpointByName } from '../domain/endpoints.ts'
import type { ReportLine } from '../domain/import-line.ts'
import type { Json } from '../domain/json.ts'
import { parseRecord } from '@sluice/wire/json/record'
import { channelDefinition } from '../management/channels/channel-definition.ts'
import { channelType, addApiVersion } from '../management/channels/channel-types.ts'
import { GatewayError } from '../errors.ts'
import { UnreadableValue } from './row-reader.ts'
import { type LitellmProvider, splitModel } from './litellm-providers.ts'
import type { PlannedChannel } from './plan-channels.ts'
import type { PlannedEntry } from './plan-configuration.ts'
import type { ImportSource, SourceReadingOptions } from './read-source.ts'
import { importedLine } from './report.ts'

/** Maximum number of models in a configuration. */
const MAX_MODELS = 10_000

/** A reference to an environment variable in LiteLLM's syntax. */
const VARIABLE = /^os\.environ\/(.+)$/

/** Members of `litellm_params` that are imported. */
const CARRIED: ReadonlySet<string> = new Set([
  'model',
  'custom_llm_provider',
  'api_base',
  'base_url',
  'api_key',
  'api_version',
  'aws_access_key_id',
  'aws_secret_access_key',
  'aws_session_token',
  'aws_region_name',
  'vertex_project',
  'vertex_location',
  'vertex_credentials',
  'rpm',
  'tpm',
  'input_cost_per_token',
  'output_cost_per_token',
])

/**
 * Sections of a LiteLLM configuration that are not imported, each with a note on what this gateway has
 * instead.
 */
const SECTIONS: ReadonlyMap<string, string> = new Map([
  ['general_settings', 'the master key and the database of the proxy are not read: keys are made here'],
  ['litellm_settings', 'see docs/configuration.md for the options of this gateway'],
  ['router_settings', 'options.retries, options.balance and models.NAME.fallback take their place'],
  ['environment_variables', 'set the variables in the environment of this gateway'],
  ['include', 'import each of the files by itself'],
])

/** One entry of `model_list`, reduced to what can be imported. */
interface Deployment {
  readonly model: string
  readonly upstream: string
  readonly provider: LitellmProvider
  /** Name for the channel, derived from the provider. */
  readonly channel: string
  readonly address: string
  readonly key: string
  /** Value of the channel field `other`: an API version or a location. */
  readonly other: string
  readonly declared: Readonly<Record<string, Json>>
  readonly rpm: number
  readonly tpm: number
  readonly missing: readonly string[]
  readonly notes: readonly string[]
}

/**
 * Reads the configuration of a LiteLLM proxy; undefined if the text is not such a configuration. Rejects with
 * a sentence for the operator if the configuration is invalid.
 */
export function litellmSource(text: string, options: SourceReadingOptions): ImportSource | undefined {
  const { tree, diagnostics } = parseYamlDocument(withoutVariables(text), () => undefined)
  const [first] = diagnostics
  const list = childOfNode(tree, 'model_list')
  if (first && /^model_list\s*:/m.test(text))
    throw new Error(`the configuration cannot be read: line ${first.line ?? 1}: ${first.message}`)
  if (!isMapping(tree) || !Array.isArray(list)) return undefined
  if (list.length > MAX_MODELS) throw new Error(`model_list has more than ${MAX_MODELS} entries`)
  const left: ReportLine[] = []
  const deployments: Deployment[] = []
  const prices = new Map<string, PlannedEntry>()
  for (const [index, entry] of itemsOfNode(list).entries()) {
    const name = textIn(entry, 'model_name') ?? ''
    try {
      deployments.push(deploymentOf(entry, name, options))
    } catch (error) {
      if (!(error instanceof UnreadableValue || error instanceof GatewayError)) throw error
      left.push(leftLine('channel', name === '' ? `model_list[${index}]` : name, error.message))
      continue
    }
    const price = priceOf(entry, name)
    if (price && 'entry' in price) prices.set(name, prices.get(name) ?? price)
    else if (price) left.push(price)
  }
  const channels = channelsOf(deployments, options)
  return {
    name: 'litellm',
    configuration: {
      entries: [...prices.values()],
      channels: channels.planned,
      left: [...left, ...channels.left],
    },
    accounts: { users: [], tokens: [] },
    quotaUnit: undefined,
    left: otherSections(tree),
  }
}

// Escapes `${NAME}`, because LiteLLM does not expand it and the YAML parser would.
function withoutVariables(text: string): string {
  return text.replaceAll('${', () => '$${')
}

function deploymentOf(entry: YamlNode, model: string, options: SourceReadingOptions): Deployment {
  const params = childOfNode(entry, 'litellm_params')
  if (model === '') throw new UnreadableValue('model_name', 'a name')
  const stated = textIn(params, 'model') ?? ''
  if (stated === '') throw new UnreadableValue('litellm_params.model', 'PROVIDER/MODEL')
  if (model.includes('*') || stated.includes('*'))
    throw new UnreadableValue(
      'model_name',
      'a model: names with * are not imported; add the models in the channel',
    )
  const missing: string[] = []
  const read = (name: string): string => {
    const text = textIn(params, name)?.trim() ?? ''
    const variable = VARIABLE.exec(text)?.[1]
    if (variable === undefined) return text
    const value = options.variable(variable)
    if (value === undefined) missing.push(variable)
    return value ?? ''
  }
  const split = splitModel(stated, read('custom_llm_provider') || undefined)
  if ('unknown' in split)
    throw new UnreadableValue(
      'litellm_params.model',
      `a provider that this gateway can call, found "${split.unknown}"`,
    )
  const { provider, channel, upstream } = split
  const address = read('api_base') || read('base_url')
  if (address === '' && missing.length > 0)
    throw new UnreadableValue(
      'api_base',
      `an address, found the variable ${missing.join(', ')}, which ${options.missing}`,
    )
  const ranks = /rerank/i.test(upstream)
  const notes = keysOfNode(params)
    .filter((name) => !CARRIED.has(name))
    .map((name) => `${model}: litellm_params.${name} has no effect here`)
  return {
    model,
    upstream,
    channel: ranks ? `${channel}-rerank` : channel,
    provider: ranks ? { type: RERANKERS.get(channel) ?? RERANK } : provider,
    address,
    ...credentials(provider, read),
    rpm: count(params, 'rpm'),
    tpm: count(params, 'tpm'),
    missing,
    notes,
  }
}

/** Number of the channel type for rerank models. Vendors in `RERANKERS` have a channel type of their own. */
const RERANK = 38
const RERANKERS: ReadonlyMap<string, number> = new Map([['cohere', 34]])

/** Reads the API key of an entry, and the provider's other settings. */
function credentials(
  { type }: LitellmProvider,
  read: (name: string) => string,
): Pick<Deployment, 'declared' | 'key' | 'other'> {
  const provider = channelType(type)?.provider
  switch (provider) {
    case 'azure':
      return { key: read('api_key'), other: read('api_version'), declared: {} }
    case 'bedrock': {
      const parts = [read('aws_access_key_id'), read('aws_secret_access_key'), read('aws_session_token')]
      const signed = parts.filter((part) => part !== '').join(':')
      return { key: signed || read('api_key'), other: read('aws_region_name'), declared: {} }
    }
    case 'vertex': {
      const project = read('vertex_project')
      const account = parseRecord(read('vertex_credentials'))
      return {
        key: account ? JSON.stringify(account) : '',
        other: read('vertex_location'),
        declared: project === '' ? {} : { project },
      }
    }
    case undefined:
      return { key: read('api_key'), other: '', declared: {} }
  }
}

/** A channel under construction: all entries of `model_list` with the same provider, address and key. */
interface Group {
  readonly name: string
  readonly first: Deployment
  readonly members: Deployment[]
}

function channelsOf(
  deployments: readonly Deployment[],
  { missing: why }: SourceReadingOptions,
): { readonly planned: readonly PlannedChannel[]; readonly left: readonly ReportLine[] } {
  const groups: Group[] = []
  const places = new Map<string, Group[]>()
  const names = new Map<string, number>()
  for (const deployment of deployments) {
    const { channel, provider, address, key, other, declared, missing } = deployment
    const place = JSON.stringify([channel, provider.type, address, key, other, declared, missing])
    const alike = places.get(place) ?? []
    // A channel maps each model to one upstream name, so a second upstream name for a model needs a second
    // channel.
    const group = alike.find(({ members }) => members.every(({ model }) => model !== deployment.model))
    if (group) {
      group.members.push(deployment)
      continue
    }
    const number = (names.get(channel) ?? 0) + 1
    names.set(channel, number)
    const made: Group = {
      name: number === 1 ? channel : `${channel}-${number}`,
      first: deployment,
      members: [deployment],
    }
    groups.push(made)
    places.set(place, [...alike, made])
  }
  const planned: PlannedChannel[] = []
  const left: ReportLine[] = []
  for (const group of groups) {
    try {
      planned.push(channelOf(group, why))
    } catch (error) {
      if (!(error instanceof UnreadableValue || error instanceof GatewayError)) throw error
      left.push(...group.members.map(({ model }) => leftLine('channel', model, error.message)))
    }
  }
  return { planned, left }
}

function channelOf({ name, first, members }: Group, why: string): PlannedChannel {
  const { provider, key, other, missing } = first
  const type = channelType(provider.type)
  if (!type) throw new UnreadableValue('litellm_params.model', 'a provider that this gateway can call')
  const given = first.address || provider.address || ''
  if (given === '' && type.defaultAddress === '' && (type.provider ?? 'azure') === 'azure')
    throw new UnreadableValue('api_base', 'an address')
  const hasKey = key !== ''
  const isOff = !hasKey && type.keyless !== true
  const notes = [
    ...missing.map((variable) => `the variable ${variable} ${why}`),
    ...(isOff ? ['it is disabled, because it has no key'] : []),
    ...members.flatMap((one) => one.notes),
  ]
  const definition = channelDefinition(
    {
      name,
      type: type.type,
      models: members.map(({ model }) => model).join(','),
      base_url: given === '' ? '' : provider.keepsAddress ? given : addApiVersion(given, type),
      model_mapping: JSON.stringify(
        Object.fromEntries(
          members.flatMap(({ model, upstream }) => (model === upstream ? [] : [[model, upstream]])),
        ),
      ),
      other,
      status: isOff || missing.length > 0 ? 2 : 1,
    },
    hasKey ? [key] : [],
  )
  const limit = limitOf(members, notes)
  const address = given === '' ? {} : provider.keepsAddress ? { base_url: withoutTrailing(given, '/') } : {}
  return {
    channel: { ...definition, declared: { ...definition.declared, ...first.declared, ...address, ...limit } },
    line: importedLine('channel', undefined, name, notes),
  }
}

/**
 * The rate limit of a channel: the sum over its entries. Omitted with a note if only some entries state a
 * limit.
 */
function limitOf(members: readonly Deployment[], notes: string[]): { readonly rate_limit?: Json } {
  const limits = (['rpm', 'tpm'] as const).flatMap((name): [string, number][] => {
    const stated = members.filter((one) => one[name] > 0)
    if (stated.length === 0) return []
    if (stated.length < members.length) {
      notes.push(`${name} does not carry over: it limits some models of the channel only`)
      return []
    }
    if (members.length > 1) notes.push(`${name} is the sum of those of its models`)
    return [[LIMITS[name], stated.reduce((sum, one) => sum + one[name], 0)]]
  })
  return limits.length === 0 ? {} : { rate_limit: { ...Object.fromEntries(limits), window: '1m' } }
}

const LIMITS = { rpm: 'requests', tpm: 'tokens' } as const

/**
 * The price of a model per million tokens; a report line if the price is incomplete; undefined if none is
 * stated.
 */
function priceOf(entry: YamlNode, model: string): PlannedEntry | ReportLine | undefined {
  const read = (name: string): Decimal | undefined => {
    const node =
      childOfNode(childOfNode(entry, 'litellm_params'), name) ??
      childOfNode(childOfNode(entry, 'model_info'), name)
    const text = node instanceof YamlScalar ? node.source : undefined
    return text === undefined ? undefined : parseDecimal(text)
  }
  const input = read('input_cost_per_token')
  const output = read('output_cost_per_token')
  if (!input && !output) return undefined
  const isInputAlone =
    endpointByName(model) === 'embeddings' || textIn(childOfNode(entry, 'model_info'), 'mode') === 'embedding'
  if (!input || (!output && !isInputAlone))
    return leftLine('price', model, 'expected both input_cost_per_token and output_cost_per_token')
  const value = {
    price: { input: perMillion(input), ...(output && { output: perMillion(output) }) },
  }
  return {
    entry: { section: 'models', name: model, value },
    line: importedLine('price', undefined, model, []),
  }
}

function perMillion({ digits, scale }: Decimal): string {
  return decimalText(
    scale >= 6 ? { digits, scale: scale - 6 } : { digits: digits * 10n ** BigInt(6 - scale), scale: 0 },
  )
}

function otherSections(tree: YamlNode): ReportLine[] {
  return keysOfNode(tree)
    .filter((section) => section !== 'model_list')
    .flatMap((section) => {
      const names = keysOfNode(childOfNode(tree, section))
      const note = SECTIONS.get(section) ?? 'it has no counterpart here'
      const listed = names.length > 0 ? names.map((name) => `${section}.${name}`) : [section]
      return listed.map((name) => leftLine('option', name, note))
    })
}

function leftLine(kind: 'channel' | 'price' | 'option', name: string, note: string): ReportLine {
  return { kind, id: undefined, name, fate: 'left', notes: [note] }
}

function textIn(tree: YamlNode, name: string): string | undefined {
  const node = childOfNode(tree, name)
  return node instanceof YamlScalar ? String(node.value) : undefined
}

function count(params: YamlNode, name: string): number {
  const value = Number(textIn(params, name) ?? 0)
  return Number.isSafeInteger(value) && value > 0 ? value : 0
}
