import type { GatewayFamily, OtherGatewayDatabase } from '@sluice/import/other-gateway'
import { RowReader, UnreadableValue } from '@sluice/import/row-reader'
import { endpointByName, isForUnsupportedEndpoint } from '../domain/endpoints.ts'
import type { ChannelDefinition } from '../domain/records/channel.ts'
import { GatewayError } from '../errors.ts'
import {
  ALLOW_FLAGS,
  channelDefinition,
  isMappedStatus,
  parseKeyLines,
  parseKeysOfType,
  requireType,
} from '../management/channels/channel-definition.ts'
import { type ChannelFields, parseJsonObjectField } from '../management/channels/channel-fields.ts'
import { channelType, addApiVersion } from '../management/channels/channel-types.ts'
import type { ReportLine } from '../domain/import-line.ts'
import { importedLine } from './report.ts'

/** Channel type of Cohere's rerank protocol. */
const COHERE = 34

/** Base URL of Cohere's chat completions. */
const COHERE_CHAT = 'https://api.cohere.ai/compatibility/v1'

/** Channel type of Jina's rerank protocol, which other vendors speak too. */
const RERANK = 38

/** A channel to be created, with its report line. */
export interface PlannedChannel {
  readonly channel: ChannelDefinition
  readonly line: ReportLine
}

/**
 * Plans the channels whose type is supported, and gives them unique names. Channels of other types get a line
 * in the report.
 */
export function planChannels({ family, channels }: OtherGatewayDatabase): {
  readonly channels: readonly PlannedChannel[]
  readonly left: readonly ReportLine[]
} {
  const planned: PlannedChannel[] = []
  const left: ReportLine[] = []
  const names = new Set<string>()
  for (const row of channels) {
    const cells = new RowReader(row)
    const id = cells.lenient(() => cells.integer('id'), 0)
    const name = cells.lenient(() => cells.text('name').trim(), '')
    try {
      const read = readChannel(cells, family)
      const kind = supportedKind(family, read.type)
      if (!kind) {
        throw new UnreadableValue(
          'type',
          `an upstream that speaks chat completions, messages, Gemini or rerank; ${kindName(family, read.type)} does not`,
        )
      }
      const own = uniqueName(read.name, id, names)
      if (own !== read.name) cells.note('renamed: the name is empty or taken by another channel')
      for (const part of splitByDialect(own, read, kind)) {
        names.add(part.name)
        planned.push({ channel: part, line: importedLine('channel', id, part.name, cells.notes) })
      }
    } catch (error) {
      if (!(error instanceof UnreadableValue || error instanceof GatewayError)) throw error
      left.push({ kind: 'channel', id, name, fate: 'left', notes: [error.message] })
    }
  }
  return { channels: planned, left }
}

function uniqueName(name: string, id: number, taken: ReadonlySet<string>): string {
  const wanted = name === '' ? `channel ${id}` : name
  return taken.has(wanted) ? `${wanted} (${id})` : wanted
}

/** Splits a channel that has chat and rerank models in two, because a channel speaks only one protocol. */
function splitByDialect(name: string, read: SourceChannel, kind: SupportedKind): ChannelDefinition[] {
  const foreign = read.models.filter(isForUnsupportedEndpoint)
  const models = read.models.filter((model) => !foreign.includes(model))
  if (foreign.length > 0 && models.length === 0) {
    throw new UnreadableValue('models', `a model of a supported endpoint; not ${foreign.join(', ')}`)
  }
  if (foreign.length > 0) read.cells.note(`left out models of unsupported endpoints: ${foreign.join(', ')}`)
  const ranking = models.filter((model) => /rerank/i.test(model))
  const others = models.filter((model) => !ranking.includes(model))
  const type = requireType(kind.type)
  if (read.keys.length === 0 && !type.keyless)
    throw new UnreadableValue('key', 'at least one key that is enabled')
  const given = read.baseUrl || kind.address || ''
  const address = kind.keepsAddress && read.baseUrl !== '' ? read.baseUrl : addApiVersion(given, type)
  if (type.protocol === 'messages') return [channelFor(name, read, type.type, address, models)]
  if (type.protocol === 'rerank') {
    const vectors =
      type.type === COHERE ? [] : others.filter((model) => endpointByName(model) === 'embeddings')
    if (vectors.length > 0) {
      const embedding = channelFor(
        ranking.length > 0 ? `${name} (embeddings)` : name,
        read,
        8,
        address,
        vectors,
      )
      if (ranking.length === 0) return [embedding]
      read.cells.note('made two channels, one for rerank and one for embeddings')
      return [channelFor(name, read, type.type, address, ranking), embedding]
    }
    const parts = [channelFor(name, read, type.type, address, ranking.length > 0 ? ranking : others)]
    if (ranking.length > 0 && others.length > 0 && type.type === COHERE) {
      parts.push(channelFor(`${name} (chat)`, read, 8, COHERE_CHAT, others))
      read.cells.note('made two channels, one for rerank and one for chat completions')
    } else if (ranking.length > 0 && others.length > 0) {
      read.cells.note(`left out models that do not rank: ${others.join(', ')}`)
    }
    return parts
  }
  if (ranking.length === 0) return [channelFor(name, read, type.type, address, others)]
  const rerank = channelFor(others.length > 0 ? `${name} (rerank)` : name, read, RERANK, address, ranking)
  if (others.length === 0) return [rerank]
  read.cells.note('made two channels, one for chat completions and one for rerank')
  return [channelFor(name, read, type.type, address, others), rerank]
}

function channelFor(
  name: string,
  read: SourceChannel,
  type: number,
  address: string,
  models: readonly string[],
): ChannelDefinition {
  const { fields, keys, headers, modelMapping } = read
  const mapping = [...modelMapping].filter(([model]) => models.includes(model))
  const given: ChannelFields = {
    ...fields,
    name,
    type,
    models: models.join(','),
    base_url: address,
    header_override: JSON.stringify(Object.fromEntries(headers)),
    model_mapping: JSON.stringify(Object.fromEntries(mapping)),
  }
  const channel = channelDefinition(given, keys)
  if (channel.declared['base_url'] === undefined) return channel
  return { ...channel, declared: { ...channel.declared, base_url: address } }
}

/**
 * The channel type of this gateway for an imported type, with differences in the handling of the base URL.
 */
interface SupportedKind {
  /** Number of the channel type in this gateway. */
  readonly type: number
  /** The default base URL. If absent, the base URL of the channel type is used. */
  readonly address?: string
  /** Whether the base URL is used unchanged; otherwise an API version is appended. */
  readonly keepsAddress?: true
}

/** The channel type for upstreams that speak chat completions at any address. */
const CUSTOM = 8

/**
 * Channel types with the same number in one-api and new-api: resellers and hosts that speak chat completions.
 */
const SHARED_KINDS: ReadonlyMap<number, SupportedKind> = new Map([
  [6, { type: CUSTOM, address: 'https://api.openaimax.com' }],
  [7, { type: CUSTOM, address: 'https://api.ohmygpt.com' }],
  [9, { type: CUSTOM, address: 'https://api.caipacity.com' }],
  [10, { type: CUSTOM, address: 'https://api.aiproxy.io' }],
  [12, { type: CUSTOM, address: 'https://api.api2gpt.com' }],
  [13, { type: CUSTOM, address: 'https://api.aigc2d.com' }],
  [22, { type: CUSTOM, address: 'https://fastgpt.run/api/openapi' }],
  [31, { type: CUSTOM, address: 'https://api.lingyiwanwu.com' }],
])

/** Channel types of new-api whose numbers differ from those of this gateway. */
const NEW_API_KINDS: ReadonlyMap<number, SupportedKind> = new Map([
  ...SHARED_KINDS,
  [19, { type: CUSTOM, address: 'https://api.360.cn' }],
  [46, { type: CUSTOM, address: 'https://qianfan.baidubce.com/v2' }],
  [47, { type: CUSTOM }],
  [53, { type: CUSTOM, address: 'https://llm.submodel.ai' }],
])

/**
 * Channel types of one-api. Their numbers above 25, and some of the lower ones, differ from those of new-api.
 */
const ONE_API_KINDS: ReadonlyMap<number, SupportedKind> = new Map([
  ...SHARED_KINDS,
  ...[1, 8, 14, 17, 20, 24, 25].map((type): [number, SupportedKind] => [type, { type }]),
  [2, { type: CUSTOM, address: 'https://oa.api2d.net' }],
  [4, { type: CUSTOM, address: 'https://api.closeai-proxy.xyz' }],
  [5, { type: CUSTOM, address: 'https://api.openai-sb.com' }],
  [19, { type: CUSTOM, address: 'https://ai.360.cn' }],
  [26, { type: CUSTOM, address: 'https://api.baichuan-ai.com' }],
  [28, { type: 42 }],
  [29, { type: CUSTOM, address: 'https://api.groq.com/openai' }],
  [30, { type: 4 }],
  [32, { type: CUSTOM, address: 'https://api.stepfun.com' }],
  [35, { type: CUSTOM, address: 'https://api.cohere.ai/compatibility' }],
  [36, { type: 43 }],
  [39, { type: CUSTOM, address: 'https://api.together.xyz' }],
  [40, { type: 45 }],
  [41, { type: CUSTOM, address: 'https://api.novita.ai/v3/openai' }],
  [44, { type: 40 }],
  [45, { type: 48 }],
  [47, { type: CUSTOM, address: 'https://qianfan.baidubce.com/v2' }],
  [48, { type: CUSTOM, address: 'https://spark-api-open.xf-yun.com' }],
  [49, { type: 17 }],
  [50, { type: CUSTOM, keepsAddress: true }],
  [
    51,
    {
      type: CUSTOM,
      address: 'https://generativelanguage.googleapis.com/v1beta/openai',
      keepsAddress: true,
    },
  ],
])

/** Names of channel types whose protocol this gateway does not support. */
const UNSUPPORTED_KINDS: Readonly<Record<GatewayFamily, ReadonlyMap<number, string>>> = {
  'new-api': new Map([
    [2, 'Midjourney'],
    [5, 'Midjourney'],
    [11, 'PaLM'],
    [15, 'Baidu'],
    [16, 'Zhipu v3'],
    [18, 'Xunfei'],
    [23, 'Tencent'],
    [35, 'MiniMax'],
    [36, 'Suno'],
    [37, 'Dify'],
    [39, 'Cloudflare'],
    [49, 'Coze'],
  ]),
  'one-api': new Map([
    [3, 'Azure'],
    [11, 'PaLM'],
    [15, 'Baidu'],
    [16, 'Zhipu v3'],
    [18, 'Xunfei'],
    [23, 'Tencent'],
    [27, 'MiniMax'],
    [33, 'AWS Bedrock'],
    [34, 'Coze'],
    [37, 'Cloudflare'],
    [38, 'DeepL'],
    [42, 'Vertex AI'],
    [43, 'proxy'],
    [46, 'Replicate'],
  ]),
}

/** How this gateway serves channels of an imported type; undefined if it does not support the type. */
function supportedKind(family: GatewayFamily, type: number): SupportedKind | undefined {
  if (family === 'one-api') return ONE_API_KINDS.get(type)
  return NEW_API_KINDS.get(type) ?? (channelType(type) ? { type } : undefined)
}

/** Names a channel type for use in a sentence. */
function kindName(family: GatewayFamily, type: number): string {
  const name = UNSUPPORTED_KINDS[family].get(type)
  return name === undefined ? `type ${type}` : `type ${type}, ${name},`
}

const ENABLED = 1
const MANUALLY_DISABLED = 2

/** Settings of new-api that change requests or responses and that this gateway does not have. */
const IGNORED_SETTINGS = ['force_format', 'thinking_to_content'] as const

/** A channel of another gateway, reduced to what this gateway supports. */
interface SourceChannel {
  readonly cells: RowReader
  readonly name: string
  readonly type: number
  /** Base URL as stored in the source; empty for the default of the type. */
  readonly baseUrl: string
  readonly models: readonly string[]
  readonly keys: readonly string[]
  readonly headers: ReadonlyMap<string, string>
  /** Upstream model name by requested name, with chains of mappings resolved. */
  readonly modelMapping: ReadonlyMap<string, string>
  /** Fields of the channel that are copied unchanged. */
  readonly fields: Partial<ChannelFields>
}

/**
 * Reads a channel. Notes settings that have no effect in this gateway for the report. Throws
 * `UnreadableValue` if a required value cannot be read.
 */
function readChannel(cells: RowReader, family: GatewayFamily): SourceChannel {
  const status = cells.integer('status', cells.isNull('status') ? 0 : ENABLED)
  if (status !== ENABLED && status !== MANUALLY_DISABLED) {
    cells.note('disabled, as the other gateway had disabled it by itself')
  }
  noteWithoutEffect(cells)
  return {
    cells,
    name: cells.lenient(() => cells.text('name').trim(), ''),
    type: cells.integer('type'),
    baseUrl: cells.text('base_url').trim(),
    models: splitList(cells.text('models')),
    keys: keysOf(cells, family),
    headers: headersOf(cells),
    modelMapping: mappingOf(cells),
    fields: {
      group: splitList(cells.text('group')).join(','),
      priority: cells.lenient(() => cells.integer('priority'), 0),
      weight: Math.max(
        0,
        cells.lenient(() => cells.integer('weight'), 0),
      ),
      status: status === ENABLED ? 1 : 2,
      ...settingsOf(cells),
      ...displayOnlyFields(cells, family),
    },
  }
}

/** Splits a comma-separated list into distinct names. */
export function splitList(text: string): string[] {
  const names = text.split(',').map((name) => name.trim())
  return [...new Set(names.filter((name) => name !== ''))]
}

function keysOf(cells: RowReader, family: GatewayFamily): string[] {
  const type = channelType(cells.integer('type'))
  const text = cells.text('key')
  const parse = (given: string): string[] =>
    family === 'new-api' && type ? parseKeysOfType(type, given) : parseKeyLines(given)
  const keys = parse(text.trim())
  const states = readObject(cells, 'channel_info')['multi_key_status_list']
  if (typeof states !== 'object' || states === null) return keys
  const disabled = new Set(
    Object.entries(states).flatMap(([index, state]) => (state === ENABLED ? [] : [Number(index)])),
  )
  const isEnabled = (_: string, index: number): boolean => !disabled.has(index)
  // new-api counts the lines from the first that is not empty, and repeated keys as often as they are there.
  const lines = text.replace(/^\n+/, '').split('\n')
  const enabled =
    type?.provider === 'vertex' ? keys.filter(isEnabled) : parse(lines.filter(isEnabled).join('\n').trim())
  if (enabled.length < keys.length) {
    cells.note(`left out ${keys.length - enabled.length} of ${keys.length} keys, which are disabled there`)
  }
  return enabled
}

function headersOf(cells: RowReader): ReadonlyMap<string, string> {
  const headers = new Map<string, string>()
  for (const [name, value] of Object.entries(readObject(cells, 'header_override'))) {
    if (
      typeof value === 'string' &&
      !/^\*$|^re(?:gex)?:/i.test(name) &&
      !/\{(?:api_key|client_header:)/.test(value)
    ) {
      headers.set(name, value)
    } else cells.note(`header_override: left out ${JSON.stringify(name)}, which is not a fixed value`)
  }
  const organization = cells.lenient(() => cells.text('openai_organization').trim(), '')
  if (organization !== '') headers.set('OpenAI-Organization', organization)
  return headers
}

function mappingOf(cells: RowReader): ReadonlyMap<string, string> {
  const given = new Map<string, string>()
  for (const [model, upstream] of Object.entries(readObject(cells, 'model_mapping'))) {
    if (typeof upstream === 'string' && upstream.trim() !== '') given.set(model, upstream.trim())
    else cells.note(`model_mapping: left out ${JSON.stringify(model)}, whose value is not a name`)
  }
  const ends = new Map<string, string>()
  for (const [model, upstream] of given) {
    const end = endOfChain(given, model, upstream)
    if (end === undefined)
      cells.note(`model_mapping: left out ${JSON.stringify(model)}, which is part of a cycle`)
    else if (end !== model) ends.set(model, end)
  }
  return ends
}

/**
 * Follows a chain of mappings to its end, because this gateway makes only one lookup. Undefined if the chain
 * is circular.
 */
function endOfChain(
  mapping: ReadonlyMap<string, string>,
  model: string,
  upstream: string,
): string | undefined {
  const seen = new Set([model])
  let name = upstream
  for (let next = mapping.get(name); next !== undefined && next !== name; next = mapping.get(name)) {
    if (seen.has(name)) return undefined
    seen.add(name)
    name = next
  }
  return name
}

function settingsOf(cells: RowReader): Pick<ChannelFields, 'setting' | 'settings'> {
  const setting = readObject(cells, 'setting')
  const settings = readObject(cells, 'settings')
  const flags = (object: Record<string, unknown>, names: readonly string[]): Record<string, boolean> =>
    Object.fromEntries(names.filter((name) => object[name] === true).map((name) => [name, true]))
  return {
    setting: JSON.stringify({ ...flags(setting, ['pass_through_body_enabled']), ...textsOf(cells, setting) }),
    settings: JSON.stringify(flags(settings, [...Object.keys(ALLOW_FLAGS), 'disable_store'])),
  }
}

/** Reads the proxy and the system prompt. one-api has a separate column for the system prompt. */
function textsOf(cells: RowReader, setting: Record<string, unknown>): Record<string, string> {
  const column = cells.lenient(() => cells.text('system_prompt').trim(), '')
  const given = { system_prompt: column, ...setting }
  return Object.fromEntries(
    (['proxy', 'system_prompt'] as const).flatMap((name) => {
      const text = (given as Record<string, unknown>)[name]
      return typeof text === 'string' && text.trim() !== '' ? [[name, text.trim()]] : []
    }),
  )
}

/**
 * Fields of a channel that have no effect in this gateway. They are copied unchanged, so that management
 * tools for one-api and new-api can display them.
 */
function displayOnlyFields(cells: RowReader, family: GatewayFamily): Record<string, string> {
  if (family !== 'new-api') return {}
  const texts = ['tag', 'remark', 'test_model', 'other'].filter((name) => textIn(cells, name) !== '')
  const objects = ['param_override', 'status_code_mapping'].filter(
    (name) => Object.keys(readObject(cells, name)).length > 0,
  )
  return Object.fromEntries([...texts, ...objects].map((name) => [name, textIn(cells, name)]))
}

function textIn(cells: RowReader, column: string): string {
  return cells.lenient(() => cells.text(column), '')
}

function noteWithoutEffect(cells: RowReader): void {
  if ('operations' in readObject(cells, 'param_override'))
    cells.note('param_override.operations has no effect here')
  for (const [from, to] of Object.entries(readObject(cells, 'status_code_mapping'))) {
    if (!isMappedStatus(from, to)) cells.note(`status_code_mapping.${from} has no effect here`)
  }
  const setting = readObject(cells, 'setting')
  for (const name of IGNORED_SETTINGS) {
    if (setting[name]) cells.note(`setting.${name} has no effect here`)
  }
}

function readObject(cells: RowReader, column: string): Record<string, unknown> {
  const text = textIn(cells, column)
  try {
    return parseJsonObjectField(column, text)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    cells.note(`${error.message}; left out`)
    return {}
  }
}
