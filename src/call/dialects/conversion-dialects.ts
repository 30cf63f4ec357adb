import {
  CHAT_BREAKPOINTS,
  CHAT_CACHE_MARKS,
  type CacheMarkRules,
  converseCacheMarks,
  MESSAGES_CACHE_MARKS,
  RESPONSES_BREAKPOINTS,
} from '@sluice/wire/cache-marks'
import { supportsWebSearch, CHAT_COMPARISON_RULES, CHAT_PROMPT_RULES, chatCodec } from '@sluice/wire/chat'
import type { Codec, UpstreamCodec, UpstreamModel } from '@sluice/wire/codec'
import type { Conversation, SharedField } from '@sluice/wire/conversation'
import type { ConversationComparisonRules } from '@sluice/wire/conversation-digests'
import {
  CONVERSE_COMPARISON_RULES,
  CONVERSE_PROMPT_RULES,
  converseCodec,
  maxTokensOf as converseMaxTokens,
} from '@sluice/wire/converse'
import {
  generateContentPath,
  GEMINI_COMPARISON_RULES,
  GEMINI_PROMPT_RULES,
  geminiCodec,
  maxTokensOf as geminiMaxTokens,
  mustStream,
} from '@sluice/wire/gemini'
import {
  maxTokensOf as messagesMaxTokens,
  MESSAGES_COMPARISON_RULES,
  MESSAGES_PROMPT_RULES,
  messagesCodec,
} from '@sluice/wire/messages'
import type { Capabilities } from '@sluice/wire/model-capabilities'
import type { PromptRules } from '@sluice/wire/prompt-text'
import type { ClientProtocol, ProtocolName } from '@sluice/wire/protocols'
import {
  maxTokensOf as responsesMaxTokens,
  RESPONSES_COMPARISON_RULES,
  RESPONSES_PROMPT_RULES,
  responsesCodec,
} from '@sluice/wire/responses'
import type { OfferedTool } from '@sluice/wire/tool-use'
import { isOpenAiHost, isOpenRouter } from '@sluice/wire/upstream-settings'
import type { Channel } from '../../domain/records/channel.ts'
import { versionHeaders } from './messages/version-headers.ts'

/** A dialect to which calls of other dialects are converted. */
export interface UpstreamDialect {
  readonly name: ProtocolName
  readonly codec: UpstreamCodec
  /** Describes which members of this dialect's requests are part of the prompt. */
  readonly prompt: PromptRules
  /** Describes how conversations in this dialect are compared with those of earlier calls. */
  readonly conversation: ConversationComparisonRules
  /** Path of its endpoint, relative to a channel's base URL. `model`: the upstream's name for the model. */
  readonly path: (model: string, stream: boolean) => string
  /** Whether the gateway requests a stream and collects it for a client that wants a whole answer. */
  readonly mustStream?: (conversation: Conversation, upstream: UpstreamModel) => boolean
  /** Headers of a converted request in addition to those of the channel: names and values alternate. */
  readonly headers: readonly string[]
  /**
   * Whether a thinking suffix of the model's name becomes a field of the request, so that upstreams get the
   * plain name.
   */
  readonly hasThinkingField: boolean
  /** Whether a model can be asked to think. If absent, its capabilities say so for every dialect. */
  readonly thinks?: (capabilities: Capabilities) => boolean
  /**
   * The cache marks (ends of prompt prefixes to be cached) that a channel's upstream accepts; undefined if it
   * accepts none.
   */
  cacheMarks(channel: Channel, capabilities: Capabilities): CacheMarkRules | undefined
  /**
   * Whether a channel's upstream accepts a field that the chat and responses protocols share. If absent, the
   * codec decides.
   */
  readonly takesSharedField?: (field: SharedField, channel: Channel, capabilities: Capabilities) => boolean
  /** The web search tool offered to an upstream for a conversation; undefined if it is left out. */
  search(conversation: Conversation, model: string): OfferedTool | undefined
  /** The maximum of output tokens that will be sent to an upstream; undefined if none is sent. */
  outputMaximum(conversation: Conversation, upstream: UpstreamModel): number | undefined
}

/** A dialect of clients whose calls can be converted for channels with another dialect. */
export interface ConversionDialect extends UpstreamDialect {
  readonly name: ClientProtocol
  readonly codec: Codec
  /** Whether the first event of a stream contains the tokens of the prompt. */
  readonly beginsWithPrompt: boolean
  /**
   * Whether clients treat the last part as the answer. After a text, no empty thought may then follow that
   * only carries a signature.
   */
  readonly endsWithAnswer: boolean
}

/** The chat completions protocol, for conversion to and from other dialects. */
export const chatConversion: ConversionDialect = {
  name: 'chat',
  codec: chatCodec,
  prompt: CHAT_PROMPT_RULES,
  conversation: CHAT_COMPARISON_RULES,
  path: () => '/chat/completions',
  headers: [],
  beginsWithPrompt: false,
  endsWithAnswer: false,
  hasThinkingField: false,
  cacheMarks: chatMarks,
  takesSharedField,
  search: ({ webSearch }, model) =>
    webSearch && !(webSearch.isOptional && !supportsWebSearch(model))
      ? { type: 'web_search_options' }
      : undefined,
  outputMaximum: ({ maxTokens }) => maxTokens,
}

/**
 * The cache marks (ends of prompt prefixes to be cached) of chat requests. Strict providers refuse
 * `cache_control`, especially its `ttl`; OpenAI has breakpoints instead. `docs/configuration.md: Channels`,
 * `allow`.
 */
function chatMarks(
  { allow, base_url }: Channel,
  { takesBreakpoints }: Capabilities,
): CacheMarkRules | undefined {
  const isAllowed = allow.has('cache_control')
  if (isOpenAiHost(base_url)) return isAllowed || takesBreakpoints ? CHAT_BREAKPOINTS : undefined
  return isAllowed || isOpenRouter(base_url) ? CHAT_CACHE_MARKS : undefined
}

/**
 * Whether a channel's upstream accepts, in chat requests, a field that the chat and responses protocols
 * share. Servers of models from vendors other than OpenAI refuse unknown fields.
 */
export function takesSharedField(
  field: SharedField,
  channel: Pick<Channel, 'allow' | 'base_url'>,
  { isOpenAi }: Pick<Capabilities, 'isOpenAi'>,
): boolean {
  return channel.allow.has(field) || isOpenAi || isOpenRouter(channel.base_url)
}

/** The messages protocol, for conversion to and from other dialects. */
export const messagesConversion: ConversionDialect = {
  name: 'messages',
  codec: messagesCodec,
  prompt: MESSAGES_PROMPT_RULES,
  conversation: MESSAGES_COMPARISON_RULES,
  path: () => '/messages',
  headers: versionHeaders({}),
  beginsWithPrompt: true,
  endsWithAnswer: true,
  hasThinkingField: true,
  cacheMarks: () => MESSAGES_CACHE_MARKS,
  search: ({ webSearch }) => webSearch && { type: 'web_search_20250305', maxUses: webSearch.maxUses },
  outputMaximum: (conversation, { capabilities }) => messagesMaxTokens(conversation, capabilities),
}

/** The responses protocol, for conversion to and from other dialects. */
export const responsesConversion: ConversionDialect = {
  name: 'responses',
  codec: responsesCodec,
  prompt: RESPONSES_PROMPT_RULES,
  conversation: RESPONSES_COMPARISON_RULES,
  path: () => '/responses',
  headers: [],
  beginsWithPrompt: false,
  endsWithAnswer: false,
  hasThinkingField: false,
  cacheMarks: ({ allow, base_url }, { takesBreakpoints }) =>
    allow.has('cache_control') || (isOpenAiHost(base_url) && takesBreakpoints)
      ? RESPONSES_BREAKPOINTS
      : undefined,
  search: ({ webSearch }) => webSearch && { type: 'web_search' },
  outputMaximum: responsesMaxTokens,
}

/** The Gemini API, for conversion to and from other dialects. */
export const geminiConversion: ConversionDialect = {
  name: 'gemini',
  codec: geminiCodec,
  prompt: GEMINI_PROMPT_RULES,
  conversation: GEMINI_COMPARISON_RULES,
  path: generateContentPath,
  mustStream,
  headers: [],
  beginsWithPrompt: false,
  endsWithAnswer: false,
  hasThinkingField: false,
  cacheMarks: () => undefined,
  // Most models refuse functions together with web search; the functions are kept.
  search: ({ webSearch, tools }) => (webSearch && tools.length === 0 ? { type: 'googleSearch' } : undefined),
  outputMaximum: (conversation, { capabilities }) => geminiMaxTokens(conversation, capabilities),
}

/** Bedrock's Converse API, to which other dialects are converted. */
export const converseConversion: UpstreamDialect = {
  name: 'converse',
  codec: converseCodec,
  prompt: CONVERSE_PROMPT_RULES,
  conversation: CONVERSE_COMPARISON_RULES,
  path: (_model, stream) => (stream ? '/converse-stream' : '/converse'),
  headers: [],
  // False, because the names of some vendors' models end in the same way as a thinking suffix.
  hasThinkingField: false,
  thinks: ({ converse }) => converse.thinking !== undefined,
  cacheMarks: (_channel, capabilities) => converseCacheMarks(capabilities.converse),
  search: () => undefined,
  outputMaximum: (conversation, { capabilities }) => converseMaxTokens(conversation, capabilities),
}

/**
 * Dialects of converted calls. Rerank is not among them, because a list of documents is not a conversation.
 */
const UPSTREAM_DIALECTS: Readonly<Record<ProtocolName, UpstreamDialect | undefined>> = {
  chat: chatConversion,
  messages: messagesConversion,
  responses: responsesConversion,
  gemini: geminiConversion,
  converse: converseConversion,
  rerank: undefined,
}

/** The dialect of this name for conversions. Routing ensures that it exists. */
export function upstreamDialect(name: ProtocolName): UpstreamDialect {
  const dialect = UPSTREAM_DIALECTS[name]
  if (!dialect) throw new Error(`no call is converted to or from ${name}`)
  return dialect
}
