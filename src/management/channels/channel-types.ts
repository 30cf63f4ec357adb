import type { ProtocolName } from '../../domain/channel.ts'

/** A kind of upstream, as tools of this family of gateways number them. */
export interface ChannelType {
  readonly type: number
  readonly vendor: string
  readonly protocol: ProtocolName
  /**
   * Where it is reached unless a channel says otherwise: without the version. Empty = a channel has to say.
   */
  readonly defaultAddress: string
  /** What such an address lacks. */
  readonly version: string
  /** It may ask for no key. */
  readonly keyless?: true
}

/** The kinds that are known here: all of them speak one of our protocols. */
export const CHANNEL_TYPES: readonly ChannelType[] = Object.freeze([
  { type: 1, vendor: 'OpenAI', protocol: 'chat', address: 'https://api.openai.com', version: '/v1' },
  {
    type: 4,
    vendor: 'Ollama',
    protocol: 'chat',
    address: 'http://localhost:11434',
    version: '/v1',
    keyless: true,
  },
  { type: 8, vendor: 'custom', protocol: 'chat', address: '', version: '/v1', keyless: true },
  {
    type: 14,
    vendor: 'Anthropic',
    protocol: 'messages',
    address: 'https://api.anthropic.com',
    version: '/v1',
  },
  {
    type: 17,
    vendor: 'Alibaba',
    protocol: 'chat',
    address: 'https://dashscope.aliyuncs.com',
    version: '/compatible-mode/v1',
  },
  { type: 20, vendor: 'OpenRouter', protocol: 'chat', address: 'https://openrouter.ai/api', version: '/v1' },
  {
    type: 24,
    vendor: 'Gemini',
    protocol: 'chat',
    address: 'https://generativelanguage.googleapis.com',
    version: '/v1beta/openai',
  },
  { type: 25, vendor: 'Moonshot', protocol: 'chat', address: 'https://api.moonshot.cn', version: '/v1' },
  {
    type: 26,
    vendor: 'Zhipu',
    protocol: 'chat',
    address: 'https://open.bigmodel.cn',
    version: '/api/paas/v4',
  },
  { type: 27, vendor: 'Perplexity', protocol: 'chat', address: 'https://api.perplexity.ai', version: '' },
  { type: 34, vendor: 'Cohere', protocol: 'rerank', address: 'https://api.cohere.ai', version: '/v1' },
  { type: 38, vendor: 'Jina', protocol: 'rerank', address: 'https://api.jina.ai', version: '/v1' },
  {
    type: 40,
    vendor: 'SiliconFlow',
    protocol: 'chat',
    address: 'https://api.siliconflow.cn',
    version: '/v1',
  },
  { type: 42, vendor: 'Mistral', protocol: 'chat', address: 'https://api.mistral.ai', version: '/v1' },
  { type: 43, vendor: 'DeepSeek', protocol: 'chat', address: 'https://api.deepseek.com', version: '/v1' },
  {
    type: 45,
    vendor: 'VolcEngine',
    protocol: 'chat',
    address: 'https://ark.cn-beijing.volces.com',
    version: '/api/v3',
  },
  { type: 48, vendor: 'xAI', protocol: 'chat', address: 'https://api.x.ai', version: '/v1' },
])

/** The kind of that number. */
export function channelType(type: number): ChannelType | undefined {
  return CHANNEL_TYPES.find((one) => one.type === type)
}

/** The numbers that are known, with whose they are. */
export const KNOWN_TYPES = CHANNEL_TYPES.map(({ type, vendor }) => `${type} (${vendor})`).join(', ')

/** The first kind of a protocol, and the one whose upstream is at that address. */
export function typeAt(protocol: ProtocolName, baseUrl: string): ChannelType | undefined {
  const speaking = CHANNEL_TYPES.filter((one) => one.protocol === protocol)
  const host = new URL(baseUrl).host
  const own = speaking.find(({ defaultAddress: address }) => address !== '' && new URL(address).host === host)
  return own ?? speaking.find(({ type }) => type === DEFAULT_TYPES[protocol])
}

/** What an upstream is that is nobody's we know. */
const DEFAULT_TYPES: Record<ProtocolName, number> = { chat: 8, messages: 14, rerank: 34 }
