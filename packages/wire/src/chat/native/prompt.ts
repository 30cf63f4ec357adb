import {
  AUDIO_TOKENS,
  DOCUMENT_TOKENS,
  tokensOfUnlistedMembers,
  IMAGE_TOKENS,
  extraMediaTokens,
  type MediaTokens,
  MESSAGE_TOKENS,
  type PromptBounds,
  REQUEST_TOKENS,
  respondsWithMedia,
  TOOLS_TOKENS,
} from '../../prompt-tokens.ts'
import { type ConversationComparisonRules, hasAnyMember, namesExcept } from '../../conversation-digests.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import { eachMedia, type FoundMedia, promptRules } from '../../prompt-text.ts'
import { CHAT_REQUEST, COMPLETIONS_REQUEST } from '../shape.ts'

/** Request fields that cause a server or a conversion to add instructions before the prompt. */
const INSTRUCTED_FIELDS = ['tools', 'functions', 'response_format'] as const

/** Request fields that add at most as many input tokens as they have bytes. */
const PLAIN_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'max_tokens',
  'max_completion_tokens',
  'stream',
  'stream_options',
  'n',
  'stop',
  'temperature',
  'top_p',
  'top_k',
  'seed',
  'presence_penalty',
  'frequency_penalty',
  'logit_bias',
  'logprobs',
  'top_logprobs',
  'prompt_cache_key',
  'prompt_cache_retention',
  'store',
  'metadata',
  'user',
  'safety_identifier',
  'service_tier',
])

/**
 * Upper bounds on the tokens of a checked request's prompt. No tokenizer is needed: a token has at least one
 * byte, so the size of the body in bytes is a bound for text. Media are counted by their kind.
 */
export function promptBounds(scan: ScannedObject): PromptBounds {
  const messages = scan.span('messages')
  const model = String(scan.value('model'))
  let hasMedia = respondsWithMedia(model)
  let tokens = scan.bytes.length + REQUEST_TOKENS + tokensOfUnlistedMembers(scan, PLAIN_FIELDS)
  let namesPrompt = false
  if (!messages) return { promptBound: tokens, hasMedia, namesPrompt }
  tokens += messages.count * MESSAGE_TOKENS
  const isInstructed = INSTRUCTED_FIELDS.some((field) => scan.has(field) && scan.kind(field) !== 'null')
  if (isInstructed) tokens += TOOLS_TOKENS
  eachMedia(scan, CHAT_PROMPT_RULES, messages.node, (media, part) => {
    hasMedia = true
    namesPrompt ||= isNamed(scan, part)
    tokens += extraMediaTokens(scan, media, model)
  })
  return { promptBound: tokens, hasMedia, namesPrompt }
}

/** Whether a part refers to a file that is stored at the provider. */
function isNamed(scan: ScannedObject, part: Node): boolean {
  const file = scan.memberOf(part, 'file')
  const id = file !== undefined && scan.kindOf(file) === 'object' ? scan.memberOf(file, 'file_id') : undefined
  return id !== undefined && scan.kindOf(id) !== 'null'
}

/** How the prompt of a chat request is counted. */
export const CHAT_PROMPT_RULES = promptRules(CHAT_REQUEST, {
  media: {
    'Part:file': findMedia,
    'Part:image_url': findMedia,
    'Part:input_audio': findMedia,
    'Part:video_url': findMedia,
  },
  turns: 'messages',
  isFramed: true,
  countsRoles: true,
})

/** How the conversations of two chat requests are compared. */
export const CHAT_COMPARISON_RULES: ConversationComparisonRules = {
  prompt: CHAT_PROMPT_RULES,
  tools: ['functions', 'tools'],
  uncompared: namesExcept([...PLAIN_FIELDS, 'prompt_cache_options', 'cache_control'], ['messages']),
  textIsPart: true,
  isUnforeseeable: (scan) => hasAnyMember(scan, ['transforms', 'plugins']),
}

/** How the prompt of a completions request is counted. */
export const COMPLETIONS_PROMPT_RULES = promptRules(COMPLETIONS_REQUEST, {
  turns: 'prompt',
  hasTokenIds: true,
})

/** How many tokens a content part with media counts as, by its member, if its URL or data match a pattern. */
interface MediaKind extends MediaTokens {
  /** The member that contains the URL or the data. It is inside the member named after the type. */
  readonly member: string
  /**
   * Matches the beginning of a URL or of data of this type. Other data may be converted to a document, even
   * if they are text.
   */
  readonly pattern: RegExp
}

/** Matches URLs that a conversion treats as images. Other types are detected from the bytes. */
const PICTURE = /^(?:https?:\/\/|data:\s*image\/[\w.+-]+\s*[;,])/i
const VIDEO = /^(?:https?:\/\/|data:\s*(?:image|video)\/[\w.+-]+\s*[;,])/i
/** Matches data that count as audio: a data URL of audio, or base64 data that are not a PDF. */
const AUDIO = /^(?:data:\s*audio\/[\w.+-]+\s*[;,]|(?!JVBER)[\w+/-]{5})/i
/** Number of leading bytes of a URL or of data that are compared with a pattern. */
const MAX_PREFIX_BYTES = 256

/**
 * Token estimates by type of part. Video has about 300 tokens per second, so 100,000 tokens are five and a
 * half minutes.
 */
const MEDIA: ReadonlyMap<string, MediaKind> = new Map([
  ['image_url', { ...IMAGE_TOKENS, member: 'url', pattern: PICTURE }],
  ['input_audio', { ...AUDIO_TOKENS, member: 'data', pattern: AUDIO }],
  ['file', { ...DOCUMENT_TOKENS, member: 'file_data', pattern: /^/ }],
  ['video_url', { max: () => 100_000, typical: () => 10_000, member: 'url', pattern: VIDEO }],
])

/** Finds the media in a part of the content, by the type of the part. */
function findMedia(scan: ScannedObject, part: Node): FoundMedia | undefined {
  const type = scan.memberOf(part, 'type')
  if (type === undefined || scan.kindOf(type) !== 'string') return undefined
  const name = scan.parse(type) as string
  const kind = MEDIA.get(name)
  if (!kind) return undefined
  const holder = scan.memberOf(part, name)
  const isObject = holder !== undefined && scan.kindOf(holder) === 'object'
  const value = isObject ? scan.memberOf(holder, kind.member) : holder
  const data = value !== undefined && scan.kindOf(value) === 'string' ? value : undefined
  const filename = isObject && name === 'file' ? scan.memberOf(holder, 'filename') : undefined
  return {
    tokens: data !== undefined && isOfKind(scan, data, kind) ? kind : DOCUMENT_TOKENS,
    data,
    name: filename === undefined ? undefined : String(scan.parse(filename)),
  }
}

/**
 * Whether the data have the type that the part states. If not, their tokens are estimated as those of a
 * document.
 */
function isOfKind(scan: ScannedObject, data: Node, { pattern }: MediaKind): boolean {
  const start = scan.startOf(data) + 1
  const end = Math.min(scan.endOf(data) - 1, start + MAX_PREFIX_BYTES)
  // Some clients escape slashes, so these are decoded. Data with other escape sequences does not match, and
  // is estimated as a document.
  return pattern.test(scan.bytes.toString('latin1', start, end).replaceAll('\\/', '/'))
}
