import { isPresent } from '../../field-check.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import type { FoundMedia } from '../../prompt-levels.ts'
import {
  featureTokens,
  mediaExcess,
  MESSAGE_TOKENS,
  type PromptBounds,
  REQUEST_TOKENS,
  respondsInMedia,
  TOOLS_TOKENS,
} from '../../prompt-tokens.ts'
import { itemNodes } from './items.ts'
import { findMedia } from '../prompt-media.ts'

/** Tokens of a tool that is sent as a function whose schema is not in the request: up to 150. */
const TYPED_TOOL_TOKENS = 160

/** Members of an item that contain parts. */
const CONTENTS = ['content', 'output'] as const

/** Fields for which servers, or a conversion, add instructions before the prompt. */
const INSTRUCTED_FIELDS = ['tools', 'text'] as const

/** Fields that refer to content stored at the provider. */
const NAMED_FIELDS = ['conversation', 'prompt'] as const

/** Fields that add no more tokens to the model's input than they have bytes. */
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
  // The continued response is counted separately, by the tokens that it had.
  'previous_response_id',
])

/**
 * Upper bounds for the prompt of a checked request, without a tokenizer. A token has at least one byte, so
 * the bytes of the body bound its text; media are counted by their kind. The response that a request
 * continues is not included, and references to items are not either.
 */
export function promptBounds(scan: ScannedObject): PromptBounds {
  const model = String(scan.value('model'))
  let hasMedia = respondsInMedia(model)
  let tokens = scan.bytes.length + REQUEST_TOKENS + featureTokens(scan, PLAIN_FIELDS)
  if (INSTRUCTED_FIELDS.some((field) => scan.has(field) && scan.kind(field) !== 'null'))
    tokens += TOOLS_TOKENS
  let tools = typedTools(scan, scan.span('tools')?.node)
  let namesPrompt = NAMED_FIELDS.some((field) => isPresent(scan, field))
  const items = itemNodes(scan)
  tokens += Math.max(items.length, 1) * MESSAGE_TOKENS
  for (const item of items) {
    tools += typedTools(scan, scan.memberOf(item, 'tools'))
    for (const { part, media } of mediaIn(scan, item)) {
      hasMedia = true
      namesPrompt ||= isNamed(scan, part)
      tokens += mediaExcess(scan, media, model)
    }
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

const NO_PARTS: readonly Node[] = []

function partsOf(scan: ScannedObject, item: Node, key: string): readonly Node[] {
  const list = scan.memberOf(item, key)
  if (list === undefined) return NO_PARTS
  if (scan.kindOf(list) === 'object') return [list]
  return scan.kindOf(list) === 'array'
    ? scan.elements(list).filter((part) => scan.kindOf(part) === 'object')
    : NO_PARTS
}

/** Reports whether a part refers to a file stored at the provider. */
function isNamed(scan: ScannedObject, part: Node): boolean {
  const id = scan.memberOf(part, 'file_id')
  return id !== undefined && scan.kindOf(id) !== 'null'
}

function mediaIn(scan: ScannedObject, item: Node): { readonly part: Node; readonly media: FoundMedia }[] {
  return CONTENTS.flatMap((key) =>
    partsOf(scan, item, key).flatMap((part) => {
      const media = findMedia(scan, part)
      return media ? [{ part, media }] : []
    }),
  )
}
