import { type ConversationComparisonRules, hasAnyMember, namesExcept } from '../../conversation-digests.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import { eachMedia, type FoundMedia, type PromptRules, promptRules } from '../../prompt-text.ts'
import {
  AUDIO_TOKENS,
  DOCUMENT_TOKENS,
  extraMediaTokens as excessOf,
  tokensOfUnlistedMembers,
  IMAGE_TOKENS,
  LARGEST_CONTEXT,
  type MediaTokens,
  MESSAGE_TOKENS,
  REQUEST_TOKENS,
  TOOLS_TOKENS,
} from '../../prompt-tokens.ts'
import { spellingsOf, topMember, valueNodeOf } from '../field-spelling.ts'
import { GEMINI_EMBED_REQUEST, GEMINI_REQUEST } from '../shape.ts'

/** Request fields that add at most one token per byte to the model's input. */
const PLAIN_FIELDS: ReadonlySet<string> = new Set(
  [
    'model',
    'stream',
    'contents',
    'systemInstruction',
    'generationConfig',
    'safetySettings',
    'labels',
    'serviceTier',
  ].flatMap(spellingsOf),
)

/**
 * Request fields that refer to content which only the provider has: the answer that a continuation token stands for is
 * read again, like the prompt before it.
 */
export const NAMED_FIELDS = ['cachedContent', 'continuationToken'] as const

/** Request fields for which the provider adds instructions to the prompt. */
const INSTRUCTED_FIELDS = ['tools', ...NAMED_FIELDS] as const

/**
 * Maximum number of tokens of a checked request's prompt, without its media and content to which it only refers. No tokenizer
 * is needed: a token of text has at least one byte, so there are at most as many tokens as bytes.
 */
export function promptBound(scan: ScannedObject): number {
  let tokens = scan.bytes.length + REQUEST_TOKENS + tokensOfUnlistedMembers(scan, PLAIN_FIELDS)
  if (INSTRUCTED_FIELDS.some((field) => topMember(scan, field))) tokens += TOOLS_TOKENS
  return tokens + Math.max(contentsOf(scan).length, 1) * MESSAGE_TOKENS
}

/** Media in a part of a request. */
interface MediaFacts {
  readonly isAny: boolean
  /** Maximum number of tokens of the media beyond one per byte of the body; negative if they have fewer tokens than bytes. */
  readonly excess: number
}

/** Result of `mediaOfContents` for contents without media. */
export const NO_MEDIA: MediaFacts = { isAny: false, excess: 0 }

/** Media in the contents of a request to generate content. */
export function mediaOfContents(scan: ScannedObject, model: string): MediaFacts {
  const contents = topMember(scan, 'contents')
  return contents ? mediaIn(scan, GEMINI_PROMPT_RULES, contents.node, model) : NO_MEDIA
}

/** Media in a value of a request. */
export function mediaIn(scan: ScannedObject, rules: PromptRules, node: Node, model: string): MediaFacts {
  let isAny = false
  let excess = 0
  eachMedia(scan, rules, node, (media) => {
    isAny = true
    excess += excessOf(scan, media, model)
  })
  return { isAny, excess }
}

function contentsOf(scan: ScannedObject): Node[] {
  const contents = topMember(scan, 'contents')
  if (!contents) return []
  const nodes = scan.kindOf(contents.node) === 'array' ? scan.elements(contents.node) : [contents.node]
  return nodes.filter((one) => scan.kindOf(one) === 'object')
}

/** How the prompt of a request to generate content is counted. */
export const GEMINI_PROMPT_RULES = promptRules(GEMINI_REQUEST, {
  media: { Part: findMedia, 'Part?thought': findMedia },
  turns: 'contents',
  isFramed: true,
})

/** How the conversations of two Gemini requests are compared. */
export const GEMINI_COMPARISON_RULES: ConversationComparisonRules = {
  prompt: GEMINI_PROMPT_RULES,
  tools: ['tools', ...spellingsOf('toolConfig')],
  uncompared: namesExcept(PLAIN_FIELDS, [
    'contents',
    'systemInstruction',
    'system_instruction',
    'generationConfig',
    'generation_config',
  ]),
  sampling: {
    of: new Set(spellingsOf('generationConfig')),
    names: new Set(
      [
        'maxOutputTokens',
        'candidateCount',
        'temperature',
        'topP',
        'topK',
        'stopSequences',
        'seed',
        'presencePenalty',
        'frequencyPenalty',
        'responseLogprobs',
        'logprobs',
      ].flatMap(spellingsOf),
    ),
  },
  isUnforeseeable: (scan) => hasAnyMember(scan, NAMED_FIELDS.flatMap(spellingsOf)),
}

/** How the prompt of an embeddings request is counted. */
export const GEMINI_EMBED_PROMPT_RULES = promptRules(GEMINI_EMBED_REQUEST, {
  media: { Part: findMedia, 'Part?thought': findMedia },
  turns: 'content',
})

/** Token estimate for a file of any kind that is given by URL. */
const FILE_TOKENS: MediaTokens = { max: () => LARGEST_CONTEXT, typical: () => 3000 }

function findMedia(scan: ScannedObject, part: Node): FoundMedia | undefined {
  const inline = valueNodeOf(scan, part, 'inlineData')
  const holder = inline ?? valueNodeOf(scan, part, 'fileData')
  if (holder === undefined) return undefined
  const type = valueNodeOf(scan, holder, 'mimeType')
  const name = valueNodeOf(scan, holder, 'displayName')
  const data = valueNodeOf(scan, holder, inline === undefined ? 'fileUri' : 'data')
  const stated = type === undefined ? '' : String(scan.parse(type))
  return {
    tokens: tokensOf(stated, inline !== undefined),
    data: data !== undefined && scan.kindOf(data) === 'string' ? data : undefined,
    ...(inline !== undefined && {
      type: stated,
      name: name === undefined ? undefined : String(scan.parse(name)),
    }),
  }
}

function tokensOf(type: string, isInline: boolean): MediaTokens {
  if (type.startsWith('image/')) return IMAGE_TOKENS
  if (!isInline || type.startsWith('video/')) return FILE_TOKENS
  return type.startsWith('audio/') ? AUDIO_TOKENS : DOCUMENT_TOKENS
}
