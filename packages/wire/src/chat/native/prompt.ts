import {
  featureTokens,
  mediaExcess,
  MESSAGE_TOKENS,
  type PromptBounds,
  REQUEST_TOKENS,
  respondsInMedia,
  TOOLS_TOKENS,
} from '../../prompt-tokens.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import type { FoundMedia } from '../../prompt-levels.ts'
import { findMedia } from '../prompt-media.ts'

/** Fields for which servers, or a conversion, add instructions before the prompt. */
const INSTRUCTED_FIELDS = ['tools', 'functions', 'response_format'] as const

/** Fields that add no more tokens to the model's input than they have bytes. */
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
 * Upper bounds for the prompt of a checked request, without a tokenizer. A token has at least one byte, so
 * the bytes of the body bound its text; media are counted by their kind.
 */
export function promptBounds(scan: ScannedObject): PromptBounds {
  const messages = scan.span('messages')
  const model = String(scan.value('model'))
  let hasMedia = respondsInMedia(model)
  let tokens = scan.bytes.length + REQUEST_TOKENS + featureTokens(scan, PLAIN_FIELDS)
  let namesPrompt = false
  if (!messages) return { promptBound: tokens, hasMedia, namesPrompt }
  tokens += messages.count * MESSAGE_TOKENS
  const isInstructed = INSTRUCTED_FIELDS.some((field) => scan.has(field) && scan.kind(field) !== 'null')
  if (isInstructed) tokens += TOOLS_TOKENS
  for (const message of scan.elements(messages.node)) {
    for (const { part, media } of mediaIn(scan, message)) {
      hasMedia = true
      namesPrompt ||= isNamed(scan, part)
      tokens += mediaExcess(scan, media, model)
    }
  }
  return { promptBound: tokens, hasMedia, namesPrompt }
}

/** Reports whether a part refers to a file stored at the provider. */
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
