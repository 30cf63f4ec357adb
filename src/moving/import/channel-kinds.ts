import { channelType } from '../../management/channels/channel-types.ts'
import type { Family } from './family.ts'

/**
 * How upstreams of a kind are called from here: the number of a kind that is known here, and where it differs
 * from it.
 */
export interface SupportedKind {
  readonly type: number
  /** Where they are reached unless a channel says otherwise; as the kind has it, if absent. */
  readonly address?: string
  /** A channel's address is taken as it is, without a version being added. */
  readonly keepsAddress?: true
}

/** Whatever speaks chat completions. */
const CUSTOM = 8

/** Kinds that both families number alike: resellers and hosts that speak chat completions. */
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

/** Where the newer family's numbers are not the ones that are known here already. */
const NEW_API_KINDS: ReadonlyMap<number, SupportedKind> = new Map([
  ...SHARED_KINDS,
  [19, { type: CUSTOM, address: 'https://api.360.cn' }],
  [46, { type: CUSTOM, address: 'https://qianfan.baidubce.com/v2' }],
  [47, { type: CUSTOM }],
  [53, { type: CUSTOM, address: 'https://llm.submodel.ai' }],
])

/** The older family counts otherwise from 26 on, and has other kinds at some numbers below. */
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
  [51, { type: 24, keepsAddress: true }],
])

/** Kinds that speak none of our protocols, by the names that both families show for them. */
const UNSUPPORTED_KINDS: Readonly<Record<Family, ReadonlyMap<number, string>>> = {
  'new-api': new Map([
    [2, 'Midjourney'],
    [3, 'Azure'],
    [5, 'Midjourney'],
    [11, 'PaLM'],
    [15, 'Baidu'],
    [16, 'Zhipu v3'],
    [18, 'Xunfei'],
    [23, 'Tencent'],
    [33, 'AWS Bedrock'],
    [35, 'MiniMax'],
    [36, 'Suno'],
    [37, 'Dify'],
    [39, 'Cloudflare'],
    [41, 'Vertex AI'],
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

/** How channels of that number are called from here; undefined where they cannot be. */
export function supportedKind(family: Family, type: number): SupportedKind | undefined {
  if (family === 'one-api') return ONE_API_KINDS.get(type)
  return NEW_API_KINDS.get(type) ?? (channelType(type) ? { type } : undefined)
}

/** A number and whose it is, for a sentence. */
export function kindName(family: Family, type: number): string {
  const name = UNSUPPORTED_KINDS[family].get(type)
  return name === undefined ? `type ${type}` : `type ${type}, ${name},`
}
