import { endpointByName, isForUnsupportedEndpoint } from '../domain/endpoints.ts'
import type { ChannelDefinition } from '../domain/records/channel.ts'
import { GatewayError } from '../errors.ts'
import { channelType, withVersion } from '../management/channels/channel-types.ts'
import type { ChannelFields } from '../management/channels/channel-fields.ts'
import { channelDefinition, requireType } from '../management/channels/channel-definition.ts'
import { Cells, UnreadableValue } from './cells.ts'
import type { Family, FamilyDatabase } from './family.ts'
import { carried, type ReportLine } from './report.ts'
import { readChannel, type SourceChannel } from './source-channel.ts'

/** Type of Cohere's rerank. */
const COHERE = 34
/** Base URL of chat completions at the same vendor. */
const COHERE_CHAT = 'https://api.cohere.ai/compatibility/v1'
/** Type of Jina's rerank, a protocol that other vendors speak too. */
const RERANK = 38

/** Channel to be created, with its report line. */
export interface PlannedChannel {
  readonly channel: ChannelDefinition
  readonly line: ReportLine
}

/** Plans the channels that are supported, with unique names; the others get a report line. */
export function planChannels({ family, channels }: FamilyDatabase): {
  readonly channels: readonly PlannedChannel[]
  readonly left: readonly ReportLine[]
} {
  const planned: PlannedChannel[] = []
  const left: ReportLine[] = []
  const names = new Set<string>()
  for (const row of channels) {
    const cells = new Cells(row)
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
        planned.push({ channel: part, line: carried('channel', id, part.name, cells.notes) })
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

/** Splits a channel with chat and rerank models in two, because each dialect needs its own channel. */
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
  const address = kind.keepsAddress && read.baseUrl !== '' ? read.baseUrl : withVersion(given, type)
  if (type.protocol === 'messages') return [channelTextFor(name, read, type.type, address, models)]
  if (type.protocol === 'rerank') {
    const vectors =
      type.type === COHERE ? [] : others.filter((model) => endpointByName(model) === 'embeddings')
    if (vectors.length > 0) {
      const embedding = channelTextFor(
        ranking.length > 0 ? `${name} (embeddings)` : name,
        read,
        8,
        address,
        vectors,
      )
      if (ranking.length === 0) return [embedding]
      read.cells.note('made two channels, one for rerank and one for embeddings')
      return [channelTextFor(name, read, type.type, address, ranking), embedding]
    }
    const parts = [channelTextFor(name, read, type.type, address, ranking.length > 0 ? ranking : others)]
    if (ranking.length > 0 && others.length > 0 && type.type === COHERE) {
      parts.push(channelTextFor(`${name} (chat)`, read, 8, COHERE_CHAT, others))
      read.cells.note('made two channels, one for rerank and one for chat completions')
    } else if (ranking.length > 0 && others.length > 0) {
      read.cells.note(`left out models that do not rank: ${others.join(', ')}`)
    }
    return parts
  }
  if (ranking.length === 0) return [channelTextFor(name, read, type.type, address, others)]
  const rerank = channelTextFor(others.length > 0 ? `${name} (rerank)` : name, read, RERANK, address, ranking)
  if (others.length === 0) return [rerank]
  read.cells.note('made two channels, one for chat completions and one for rerank')
  return [channelTextFor(name, read, type.type, address, others), rerank]
}

function channelTextFor(
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

/** Channel type that serves an imported kind of upstream, and how the import deviates from that type. */
interface SupportedKind {
  /** Number of the channel type here. */
  readonly type: number
  /** Default base URL; absent = the one of the type. */
  readonly address?: string
  /** A channel's base URL is used unchanged, without a version being added. */
  readonly keepsAddress?: true
}

/** Type of upstreams that speak chat completions at any address. */
const CUSTOM = 8

/** Kinds with the same number in both families: resellers and hosts that speak chat completions. */
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

/** Kinds of new-api whose numbers differ from the types here. */
const NEW_API_KINDS: ReadonlyMap<number, SupportedKind> = new Map([
  ...SHARED_KINDS,
  [19, { type: CUSTOM, address: 'https://api.360.cn' }],
  [46, { type: CUSTOM, address: 'https://qianfan.baidubce.com/v2' }],
  [47, { type: CUSTOM }],
  [53, { type: CUSTOM, address: 'https://llm.submodel.ai' }],
])

/** Kinds of one-api, whose numbers differ from new-api's above 25 and in places below. */
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

/** Names of kinds that use none of the gateway's dialects. */
const UNSUPPORTED_KINDS: Readonly<Record<Family, ReadonlyMap<number, string>>> = {
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

/** Looks up how channels of that number are served here; undefined if they are not supported. */
function supportedKind(family: Family, type: number): SupportedKind | undefined {
  if (family === 'one-api') return ONE_API_KINDS.get(type)
  return NEW_API_KINDS.get(type) ?? (channelType(type) ? { type } : undefined)
}

/** Describes a number of a kind, for a sentence. */
function kindName(family: Family, type: number): string {
  const name = UNSUPPORTED_KINDS[family].get(type)
  return name === undefined ? `type ${type}` : `type ${type}, ${name},`
}
