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
import {
  type FoundMedia,
  type PromptObjectRules,
  type PromptRules,
  OPENAI_SERVICE_MEMBERS,
} from '../../prompt-text.ts'

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
  for (const message of scan.elements(messages.node)) {
    for (const { part, media } of mediaIn(scan, message)) {
      hasMedia = true
      namesPrompt ||= isNamed(scan, part)
      tokens += extraMediaTokens(scan, media, model)
    }
  }
  return { promptBound: tokens, hasMedia, namesPrompt }
}

/** Whether a part refers to a file that is stored at the provider. */
function isNamed(scan: ScannedObject, part: Node): boolean {
  const file = scan.memberOf(part, 'file')
  const id = file !== undefined && scan.kindOf(file) === 'object' ? scan.memberOf(file, 'file_id') : undefined
  return id !== undefined && scan.kindOf(id) !== 'null'
}

function mediaIn(scan: ScannedObject, message: Node): { readonly part: Node; readonly media: FoundMedia }[] {
  const content = scan.kindOf(message) === 'object' ? scan.memberOf(message, 'content') : undefined
  if (content === undefined || scan.kindOf(content) !== 'array') return []
  return scan.elements(content).flatMap((part) => {
    const media = scan.kindOf(part) === 'object' ? findMedia(scan, part) : undefined
    return media ? [{ part, media }] : []
  })
}

const SAMPLING_OF_CHAT = {
  max_tokens: 'sampling',
  max_completion_tokens: 'sampling',
  n: 'sampling',
  stop: 'sampling',
  temperature: 'sampling',
  top_p: 'sampling',
  top_k: 'sampling',
  min_p: 'sampling',
  seed: 'sampling',
  presence_penalty: 'sampling',
  frequency_penalty: 'sampling',
  repetition_penalty: 'sampling',
  logit_bias: 'sampling',
  logprobs: 'sampling',
  top_logprobs: 'sampling',
} as const

/** The parts of a message that are read for the prompt, the same in chat and completions. */
const CHAT_PARTS = {
  part: {
    notPrompt: {
      type: 'kind',
      id: 'id',
      index: 'id',
      format: 'kind',
      cache_control: 'service',
      signature: 'signature',
    },
    read: {
      text: 'text',
      refusal: 'text',
      thinking: 'part',
      summary: 'part',
      data: 'encrypted',
      image_url: 'media',
      input_audio: 'media',
      file: 'media',
      video_url: 'media',
    },
    media: findMedia,
  },
  media: {
    notPrompt: { detail: 'service', format: 'kind', file_id: 'id' },
    read: { url: 'text', data: 'text', file_data: 'text', filename: 'text' },
  },
} as const satisfies Record<string, PromptObjectRules>

/** Describes which members of a chat request belong to the prompt. */
export const CHAT_PROMPT_RULES = {
  levels: {
    request: {
      notPrompt: {
        ...SAMPLING_OF_CHAT,
        ...OPENAI_SERVICE_MEMBERS,
        reasoning_effort: 'service',
        verbosity: 'service',
        modalities: 'service',
        audio: 'service',
      },
      read: {
        messages: 'message',
        tools: 'json',
        functions: 'json',
        tool_choice: 'json',
        function_call: 'json',
        response_format: 'json',
        prediction: 'message',
      },
    },
    message: {
      notPrompt: { type: 'kind', id: 'id', tool_call_id: 'id', audio: 'id', cache_control: 'service' },
      read: {
        role: 'text',
        name: 'text',
        content: 'part',
        refusal: 'text',
        reasoning_content: 'part',
        reasoning: 'part',
        reasoning_details: 'part',
        tool_calls: 'call',
        function_call: 'function',
      },
    },
    ...CHAT_PARTS,
    call: {
      notPrompt: { type: 'kind', id: 'id', index: 'id' },
      read: { function: 'function', custom: 'function', extra_content: 'signed' },
    },
    function: { notPrompt: {}, read: { name: 'text', arguments: 'text', input: 'text' } },
    signed: { notPrompt: { thought_signature: 'signature' }, read: { google: 'signed' } },
  },
  turns: 'messages',
  isFramed: true,
} as const satisfies PromptRules

/** How the conversations of two chat requests are compared. */
export const CHAT_COMPARISON_RULES: ConversationComparisonRules = {
  levels: CHAT_PROMPT_RULES,
  uncompared: namesExcept([...PLAIN_FIELDS, 'prompt_cache_options', 'cache_control'], ['messages']),
  textIsPart: true,
  isUnforeseeable: (scan) => hasAnyMember(scan, ['transforms', 'plugins']),
}

/** Describes which members of a completions request belong to the prompt. */
export const COMPLETIONS_PROMPT_RULES = {
  levels: {
    request: {
      notPrompt: { ...SAMPLING_OF_CHAT, ...OPENAI_SERVICE_MEMBERS, best_of: 'sampling', echo: 'service' },
      read: { prompt: 'text', suffix: 'text' },
    },
  },
  turns: 'prompt',
  hasTokenIds: true,
} as const satisfies PromptRules

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
