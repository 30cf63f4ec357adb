import type { ConversationComparisonRules } from '../../conversation-digests.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import type { FoundMedia, PromptRules } from '../../prompt-text.ts'
import { AUDIO_TOKENS, DOCUMENT_TOKENS, IMAGE_TOKENS, type MediaTokens } from '../../prompt-tokens.ts'

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

/** Describes which members of a Converse request belong to the prompt. */
export const CONVERSE_PROMPT_RULES = {
  levels: {
    request: {
      notPrompt: {
        modelId: 'service',
        inferenceConfig: 'sampling',
        guardrailConfig: 'service',
        performanceConfig: 'service',
        serviceTier: 'service',
        requestMetadata: 'metadata',
        additionalModelResponseFieldPaths: 'service',
      },
      read: {
        system: 'block',
        messages: 'message',
        toolConfig: 'json',
        outputConfig: 'json',
        additionalModelRequestFields: 'json',
        promptVariables: 'json',
      },
    },
    message: { notPrompt: { role: 'kind' }, read: { content: 'block' } },
    block: {
      notPrompt: { cachePoint: 'service', toolUseId: 'id', status: 'service', signature: 'signature' },
      read: {
        text: 'text',
        image: 'media',
        document: 'media',
        video: 'media',
        audio: 'media',
        toolUse: 'block',
        toolResult: 'block',
        name: 'text',
        input: 'json',
        content: 'block',
        json: 'json',
        reasoningContent: 'block',
        reasoningText: 'block',
        redactedContent: 'encrypted',
      },
      media: findMedia,
    },
    media: {
      notPrompt: { format: 'kind' },
      read: { name: 'text', context: 'text', source: 'source' },
    },
    source: { notPrompt: { s3Location: 'id' }, read: { bytes: 'text', text: 'text', content: 'block' } },
  },
  turns: 'messages',
  isFramed: true,
} as const satisfies PromptRules

/** How the conversations of two Converse requests are compared. */
export const CONVERSE_COMPARISON_RULES: ConversationComparisonRules = {
  levels: CONVERSE_PROMPT_RULES,
  uncompared: new Set([
    'modelId',
    'inferenceConfig',
    'performanceConfig',
    'serviceTier',
    'requestMetadata',
    'additionalModelResponseFieldPaths',
  ]),
}
