import type { ProtocolName } from '@sluice/wire/protocols'
import { UPSTREAM_PROTOCOLS } from '../../domain/protocols.ts'
import type { Channel, ProviderName } from '../../domain/records/channel.ts'
import { withoutTrailing } from '../../domain/without-trailing.ts'

/** A type of channel, as One API and related gateways number them. */
export interface ChannelType {
  readonly type: number
  readonly vendor: string
  /** The protocol of a channel that states none; undefined if a channel of this type must state one. */
  readonly protocol: ProtocolName | undefined
  /** All protocols of a channel that states none, if there are several. */
  readonly protocols?: readonly ProtocolName[]
  /**
   * The base URL without version of a channel that states none; empty if a channel of this type must state
   * one.
   */
  readonly defaultAddress: string
  /** The version, such as `/v1`, that is added to base URLs without one. */
  readonly version: string
  /** The `provider` of channels of this type in gateway.yaml; absent if they need none. */
  readonly provider?: ProviderName
  /** Set if a channel of this type may have no key. */
  readonly keyless?: true
}

/**
 * All types whose protocol the gateway can speak. Only channels of type 0 can have the responses protocol.
 */
export const CHANNEL_TYPES: readonly ChannelType[] = Object.freeze([
  { type: 0, vendor: 'any', protocol: undefined, defaultAddress: '', version: '/v1', keyless: true },
  { type: 1, vendor: 'OpenAI', protocol: 'chat', defaultAddress: 'https://api.openai.com', version: '/v1' },
  { type: 3, vendor: 'Azure', protocol: 'chat', defaultAddress: '', version: '', provider: 'azure' },
  {
    type: 4,
    vendor: 'Ollama',
    protocol: 'chat',
    defaultAddress: 'http://localhost:11434',
    version: '/v1',
    keyless: true,
  },
  { type: 8, vendor: 'custom', protocol: 'chat', defaultAddress: '', version: '/v1', keyless: true },
  {
    type: 14,
    vendor: 'Anthropic',
    protocol: 'messages',
    defaultAddress: 'https://api.anthropic.com',
    version: '/v1',
  },
  {
    type: 17,
    vendor: 'Alibaba',
    protocol: 'chat',
    defaultAddress: 'https://dashscope.aliyuncs.com',
    version: '/compatible-mode/v1',
  },
  {
    type: 20,
    vendor: 'OpenRouter',
    protocol: 'chat',
    defaultAddress: 'https://openrouter.ai/api',
    version: '/v1',
  },
  {
    type: 24,
    vendor: 'Gemini',
    protocol: 'gemini',
    defaultAddress: 'https://generativelanguage.googleapis.com',
    version: '/v1beta',
  },
  {
    type: 25,
    vendor: 'Moonshot',
    protocol: 'chat',
    defaultAddress: 'https://api.moonshot.cn',
    version: '/v1',
  },
  {
    type: 26,
    vendor: 'Zhipu',
    protocol: 'chat',
    defaultAddress: 'https://open.bigmodel.cn',
    version: '/api/paas/v4',
  },
  {
    type: 27,
    vendor: 'Perplexity',
    protocol: 'chat',
    defaultAddress: 'https://api.perplexity.ai',
    version: '',
  },
  {
    type: 33,
    vendor: 'AWS Bedrock',
    protocol: 'messages',
    defaultAddress: '',
    version: '',
    provider: 'bedrock',
  },
  { type: 34, vendor: 'Cohere', protocol: 'rerank', defaultAddress: 'https://api.cohere.ai', version: '/v1' },
  { type: 38, vendor: 'Jina', protocol: 'rerank', defaultAddress: 'https://api.jina.ai', version: '/v1' },
  {
    type: 40,
    vendor: 'SiliconFlow',
    protocol: 'chat',
    defaultAddress: 'https://api.siliconflow.cn',
    version: '/v1',
  },
  {
    type: 41,
    vendor: 'Vertex AI',
    protocol: 'messages',
    protocols: ['messages', 'gemini', 'chat'],
    defaultAddress: '',
    version: '',
    provider: 'vertex',
  },
  { type: 42, vendor: 'Mistral', protocol: 'chat', defaultAddress: 'https://api.mistral.ai', version: '/v1' },
  {
    type: 43,
    vendor: 'DeepSeek',
    protocol: 'chat',
    defaultAddress: 'https://api.deepseek.com',
    version: '/v1',
  },
  {
    type: 45,
    vendor: 'VolcEngine',
    protocol: 'chat',
    defaultAddress: 'https://ark.cn-beijing.volces.com',
    version: '/api/v3',
  },
  { type: 48, vendor: 'xAI', protocol: 'chat', defaultAddress: 'https://api.x.ai', version: '/v1' },
])

/** The channel type with this number; undefined if it is unknown. */
export function channelType(type: number): ChannelType | undefined {
  return CHANNEL_TYPES.find((one) => one.type === type)
}

/** The known type numbers with their vendors, for error messages. */
export const KNOWN_TYPES = CHANNEL_TYPES.map(({ type, vendor }) => `${type} (${vendor})`).join(', ')

/**
 * The type that a declared channel corresponds to: that of its provider, otherwise that of the vendor with
 * this host, otherwise the default type of its first protocol that has one.
 */
export function typeOfDeclaredChannel(
  protocols: readonly ProtocolName[],
  baseUrl: string,
  provider: Channel['provider'],
): ChannelType | undefined {
  if (provider !== 'generic') return CHANNEL_TYPES.find((one) => one.provider === provider)
  const speaking = CHANNEL_TYPES.filter(({ protocol }) => protocol && protocols.includes(protocol))
  const host = new URL(baseUrl).host
  const own = speaking.find(
    ({ defaultAddress }) => defaultAddress !== '' && new URL(defaultAddress).host === host,
  )
  const usual = protocols
    .map((protocol) => UPSTREAM_PROTOCOLS[protocol].channelType)
    .find((type) => type !== undefined)
  return own ?? channelType(usual ?? 0)
}

/** Matches a version in the path of a base URL: `/v1`, `/v1beta`. */
const VERSION = /\/v\d+(?:(?:alpha|beta)\d*)?(?=\/|$)/i

/**
 * Adds the type's version to a base URL without one. A base URL with a version, or an invalid one, is
 * returned unchanged. An empty one means the type's default base URL.
 */
export function addApiVersion(given: string, { defaultAddress, version }: ChannelType): string {
  const bare = withoutTrailing(given.trim() || defaultAddress, '/')
  const url = URL.canParse(bare) ? new URL(bare) : undefined
  const isPlain = url !== undefined && !/[?#\s\\]/.test(bare)
  return isPlain && !VERSION.test(url.pathname) ? bare + version : bare
}

/** Removes the version from the end of a base URL. */
export function removeApiVersion(baseUrl: string, type: ChannelType | undefined): string {
  const version = type?.version || '/v1'
  return baseUrl.endsWith(version) ? baseUrl.slice(0, -version.length) : baseUrl
}
