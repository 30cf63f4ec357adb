import { channelType } from '../management/channels/channel-types.ts'
import type { Family } from './family.ts'

/** Channel type that serves an imported kind of upstream, and how the import deviates from that type. */
export interface SupportedKind {
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

/** Names of kinds that speak none of the dialects here. */
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
export function supportedKind(family: Family, type: number): SupportedKind | undefined {
  if (family === 'one-api') return ONE_API_KINDS.get(type)
  return NEW_API_KINDS.get(type) ?? (channelType(type) ? { type } : undefined)
}

/** Describes a number of a kind, for a sentence. */
export function kindName(family: Family, type: number): string {
  const name = UNSUPPORTED_KINDS[family].get(type)
  return name === undefined ? `type ${type}` : `type ${type}, ${name},`
}
