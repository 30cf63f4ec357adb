import type { ConversationComparisonRules } from '../../conversation-digests.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import { type FoundMedia, promptRules } from '../../prompt-text.ts'
import { AUDIO_TOKENS, DOCUMENT_TOKENS, IMAGE_TOKENS, type MediaTokens } from '../../prompt-tokens.ts'
import { CONVERSE_REQUEST } from '../shape.ts'

/** How the tokens of media are estimated, by the member that contains the media. */
const MEDIA: ReadonlyMap<string, MediaTokens> = new Map([
  ['image', IMAGE_TOKENS],
  ['document', DOCUMENT_TOKENS],
  ['audio', AUDIO_TOKENS],
  ['video', { max: () => 100_000, typical: () => 10_000 }],
])

function findMedia(scan: ScannedObject, block: Node): FoundMedia | undefined {
  for (const [member, tokens] of MEDIA) {
    const holder = scan.memberOf(block, member)
    if (holder === undefined || scan.kindOf(holder) !== 'object') continue
    const source = scan.memberOf(holder, 'source')
    const isObject = source !== undefined && scan.kindOf(source) === 'object'
    const isText =
      isObject && (scan.memberOf(source, 'text') ?? scan.memberOf(source, 'content')) !== undefined
    if (isText) return undefined
    const bytes = isObject ? scan.memberOf(source, 'bytes') : undefined
    const format = scan.memberOf(holder, 'format')
    return {
      tokens,
      data: bytes !== undefined && scan.kindOf(bytes) === 'string' ? bytes : undefined,
      // The format is also used as a file name extension, because text formats have the same names.
      ...(member === 'document' && format !== undefined && { name: String(scan.parse(format)) }),
    }
  }
  return undefined
}

/** How the prompt of a Converse request is counted. */
export const CONVERSE_PROMPT_RULES = promptRules(CONVERSE_REQUEST, {
  media: { Block: findMedia },
  turns: 'messages',
  isFramed: true,
})

/** How the conversations of two Converse requests are compared. */
export const CONVERSE_COMPARISON_RULES: ConversationComparisonRules = {
  prompt: CONVERSE_PROMPT_RULES,
  tools: ['toolConfig'],
  uncompared: new Set([
    'modelId',
    'inferenceConfig',
    'performanceConfig',
    'serviceTier',
    'requestMetadata',
    'additionalModelResponseFieldPaths',
  ]),
}
