import { isPresent } from '../../field-check.ts'
import {
  mayCompactPrompt,
  type ConversationComparisonRules,
  hasAnyMember,
  namesExcept,
} from '../../conversation-digests.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import { eachMedia, type FoundMedia, promptRules } from '../../prompt-text.ts'
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
import { RESPONSES_REQUEST } from '../shape.ts'
import { inputItemNodes } from './items.ts'

/**
 * Maximum number of tokens of a tool whose type is not `function`. The provider replaces it by a function,
 * whose schema is not in the request; up to 150 tokens were seen.
 */
const TYPED_TOOL_TOKENS = 160

/** Request fields because of which servers, or a conversion, may add instructions to the prompt. */
const INSTRUCTED_FIELDS = ['tools', 'text'] as const

/** Request fields that refer to content stored at the provider. */
const NAMED_FIELDS = ['conversation', 'prompt'] as const

/** Request fields that add at most one token per byte to the model's input. */
const PLAIN_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'input',
  'instructions',
  'max_output_tokens',
  'stream',
  'stream_options',
  'store',
  'background',
  'include',
  'temperature',
  'top_p',
  'top_logprobs',
  'truncation',
  'metadata',
  'user',
  'safety_identifier',
  'service_tier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'prompt_cache_options',
  'client_metadata',
  // The tokens of the previous response are counted separately; their number is known.
  'previous_response_id',
])

/**
 * Maximum number of tokens of a checked request's prompt. No tokenizer is needed: a token of text has at
 * least one byte, so there are at most as many tokens as bytes; media are counted by their type. Not included
 * are the previous response that a request continues, and items to which it only refers.
 */
export function promptBounds(scan: ScannedObject): PromptBounds {
  const model = String(scan.value('model'))
  let hasMedia = respondsWithMedia(model)
  let tokens = scan.bytes.length + REQUEST_TOKENS + tokensOfUnlistedMembers(scan, PLAIN_FIELDS)
  if (INSTRUCTED_FIELDS.some((field) => scan.has(field) && scan.kind(field) !== 'null'))
    tokens += TOOLS_TOKENS
  let tools = typedTools(scan, scan.span('tools')?.node)
  let namesPrompt = NAMED_FIELDS.some((field) => isPresent(scan, field))
  const items = inputItemNodes(scan)
  tokens += Math.max(items.length, 1) * MESSAGE_TOKENS
  for (const item of items) {
    tools += typedTools(scan, scan.memberOf(item, 'tools'))
    eachMedia(scan, RESPONSES_PROMPT_RULES, item, (media, part) => {
      hasMedia = true
      namesPrompt ||= isNamed(scan, part)
      tokens += extraMediaTokens(scan, media, model)
    })
  }
  return { promptBound: tokens + tools * TYPED_TOOL_TOKENS, hasMedia, namesPrompt }
}

/** Number of tools in a list that are not functions, including those in namespaces. */
function typedTools(scan: ScannedObject, list: Node | undefined): number {
  if (list === undefined || scan.kindOf(list) !== 'array') return 0
  let count = 0
  for (const tool of scan.elements(list)) {
    if (scan.kindOf(tool) !== 'object') continue
    const type = scan.memberOf(tool, 'type')
    if (type !== undefined && scan.textOf(type) !== '"function"')
      count += 1 + typedTools(scan, scan.memberOf(tool, 'tools'))
  }
  return count
}

/** Whether a part refers to a file stored at the provider. */
function isNamed(scan: ScannedObject, part: Node): boolean {
  const id = scan.memberOf(part, 'file_id')
  return id !== undefined && scan.kindOf(id) !== 'null'
}

/** How the prompt of a responses request is counted. */
export const RESPONSES_PROMPT_RULES = promptRules(RESPONSES_REQUEST, {
  media: {
    'Item:computer_screenshot': findMedia,
    'Item:input_audio': findMedia,
    'Item:input_file': findMedia,
    'Item:input_image': findMedia,
  },
  turns: 'input',
  isFramed: true,
  countsRoles: true,
})

/** How the conversations of two responses requests are compared. */
export const RESPONSES_COMPARISON_RULES: ConversationComparisonRules = {
  prompt: RESPONSES_PROMPT_RULES,
  tools: ['tools'],
  uncompared: namesExcept(PLAIN_FIELDS, ['input', 'instructions', 'truncation']),
  isUnforeseeable: (scan) =>
    mayCompactPrompt(scan) ||
    hasAnyMember(scan, ['previous_response_id', ...NAMED_FIELDS]) ||
    (isPresent(scan, 'truncation') && scan.value('truncation') !== 'disabled'),
  extraTokens: (scan, item) =>
    scan.kindOf(item) === 'object' ? typedTools(scan, scan.memberOf(item, 'tools')) * TYPED_TOOL_TOKENS : 0,
}

/** Matches URLs that a conversion treats as an image. Any other URL is counted as a document. */
const PICTURE = /^(?:https?:\/\/|data:\s*image\/[\w.+-]+\s*[;,])/i
/** Number of bytes of a URL that `PICTURE` is compared with. */
const MAX_PREFIX_BYTES = 256

/**
 * By the type of a part with media: how their tokens are estimated, and the members that may contain their
 * data.
 */
const MEDIA: ReadonlyMap<string, { readonly tokens: MediaTokens; readonly members: readonly string[] }> =
  new Map([
    ['input_image', { tokens: IMAGE_TOKENS, members: ['image_url'] }],
    ['computer_screenshot', { tokens: IMAGE_TOKENS, members: ['image_url'] }],
    ['input_file', { tokens: DOCUMENT_TOKENS, members: ['file_data', 'file_url'] }],
    ['input_audio', { tokens: AUDIO_TOKENS, members: ['data'] }],
  ])

/** Finds the media of a part, by its type. */
function findMedia(scan: ScannedObject, part: Node): FoundMedia | undefined {
  const type = scan.memberOf(part, 'type')
  if (type === undefined || scan.kindOf(type) !== 'string') return undefined
  const kind = MEDIA.get(scan.parse(type) as string)
  if (!kind) return undefined
  const sound = scan.memberOf(part, 'input_audio')
  const holder = sound !== undefined && scan.kindOf(sound) === 'object' ? sound : part
  const data = kind.members
    .map((member) => scan.memberOf(holder, member))
    .find((node) => node !== undefined && scan.kindOf(node) === 'string')
  const name = scan.memberOf(part, 'filename')
  const isOther = kind.tokens === IMAGE_TOKENS && data !== undefined && !isPicture(scan, data)
  return {
    tokens: isOther ? DOCUMENT_TOKENS : kind.tokens,
    data,
    name: name === undefined ? undefined : String(scan.parse(name)),
  }
}

/**
 * Whether an `input_image` is counted as an image. One with a file id always is, although the file may be
 * anything.
 */
function isPicture(scan: ScannedObject, url: Node): boolean {
  const start = scan.startOf(url) + 1
  const end = Math.min(scan.endOf(url) - 1, start + MAX_PREFIX_BYTES)
  // Some clients escape slashes, so these are decoded. Data with other escape sequences does not match, and
  // is counted as a document.
  return PICTURE.test(scan.bytes.toString('latin1', start, end).replaceAll('\\/', '/'))
}
