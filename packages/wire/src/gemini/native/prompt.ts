import { type ConversationComparisonRules, hasAnyMember, namesExcept } from '../../conversation-digests.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import type { FoundMedia, PromptObjectRules, PromptRules } from '../../prompt-text.ts'
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
import { camelCase, valueNodeOf, snakeCase, topMember } from '../field-spelling.ts'

/**
 * Bytes without which a body contains no media: beginnings of the names `inlineData` and `fileData`, or of an
 * escape sequence, with which a name could be written.
 */
const MEDIA_MARKS = ['inline', 'file', '\\u'].map((mark) => Buffer.from(mark))

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
  ].flatMap((name) => [name, snakeCase(name)]),
)

/** Request fields for which the provider adds instructions to the prompt. */
const INSTRUCTED_FIELDS = ['tools', 'cachedContent'] as const

/**
 * Maximum number of tokens of a checked request's prompt, without its media and cached content. No tokenizer
 * is needed: a token of text has at least one byte, so there are at most as many tokens as bytes.
 */
export function promptBound(scan: ScannedObject): number {
  let tokens = scan.bytes.length + REQUEST_TOKENS + tokensOfUnlistedMembers(scan, PLAIN_FIELDS)
  if (INSTRUCTED_FIELDS.some((field) => topMember(scan, field))) tokens += TOOLS_TOKENS
  return tokens + Math.max(contentsOf(scan).length, 1) * MESSAGE_TOKENS
}

/** Result of `mediaOfContents` for contents without media. */
export const NO_MEDIA: ReturnType<typeof mediaOfContents> = { isAny: false, excess: 0 }

/**
 * Returns whether the contents have media, and how many tokens the media can have in addition to one per byte
 * of the body.
 */
export function mediaOfContents(
  scan: ScannedObject,
  model: string,
): { readonly isAny: boolean; readonly excess: number } {
  let isAny = false
  let excess = 0
  if (mayHaveMedia(scan))
    for (const content of contentsOf(scan)) {
      isAny ||= hasMediaIn(scan, content)
      excess += extraMediaTokensOfContent(scan, content, model)
    }
  return { isAny, excess }
}

/**
 * Maximum number of tokens of a content's media in addition to one token per byte of the body. Negative if
 * the media have fewer tokens than bytes.
 */
export function extraMediaTokensOfContent(scan: ScannedObject, content: Node, model: string): number {
  return mediaIn(scan, content).reduce((sum, media) => sum + excessOf(scan, media, model), 0)
}

/** Whether the body may contain media. If this returns false, the body certainly contains none. */
function mayHaveMedia({ bytes }: ScannedObject): boolean {
  return MEDIA_MARKS.some((mark) => bytes.includes(mark))
}

/** Whether a content has media: anything other than text, function calls and code. */
export function hasMediaIn(scan: ScannedObject, content: Node): boolean {
  return mediaIn(scan, content).length > 0
}

function contentsOf(scan: ScannedObject): Node[] {
  const contents = topMember(scan, 'contents')
  return contents ? objectsIn(scan, contents.node) : []
}

function partsIn(scan: ScannedObject, content: Node): Node[] {
  const parts = valueNodeOf(scan, content, 'parts')
  return parts === undefined ? [] : objectsIn(scan, parts)
}

function objectsIn(scan: ScannedObject, node: Node): Node[] {
  const nodes = scan.kindOf(node) === 'array' ? scan.elements(node) : [node]
  return nodes.filter((one) => scan.kindOf(one) === 'object')
}

/** The media in a content, including those in function responses. */
function mediaIn(scan: ScannedObject, content: Node): FoundMedia[] {
  return partsIn(scan, content).flatMap((part) => {
    const response = valueNodeOf(scan, part, 'functionResponse')
    return [part, ...(response === undefined ? [] : partsIn(scan, response))].flatMap((node) => {
      const media = findMedia(scan, node)
      return media ? [media] : []
    })
  })
}

const GEMINI_CONTENTS = {
  content: { notPrompt: { role: 'kind' }, read: { parts: 'part' } },
  part: {
    notPrompt: {
      thought: 'kind',
      thoughtSignature: 'signature',
      videoMetadata: 'service',
      mediaResolution: 'service',
    },
    read: {
      text: 'text',
      functionCall: 'call',
      functionResponse: 'result',
      executableCode: 'code',
      codeExecutionResult: 'code',
      inlineData: 'data',
      fileData: 'data',
    },
    media: findMedia,
  },
  call: { notPrompt: { id: 'id' }, read: { name: 'text', args: 'json', partialArgs: 'json' } },
  result: {
    notPrompt: { id: 'id', scheduling: 'service', willContinue: 'service' },
    read: { name: 'text', response: 'json', parts: 'part' },
  },
  code: {
    notPrompt: { id: 'id', language: 'kind', outcome: 'kind' },
    read: { code: 'text', output: 'text' },
  },
  data: { notPrompt: { mimeType: 'kind' }, read: { data: 'text', fileUri: 'text', displayName: 'text' } },
} as const satisfies Record<string, PromptObjectRules>

/** Describes which members of a request to generate content belong to the prompt. */
export const GEMINI_PROMPT_RULES = {
  levels: {
    request: {
      notPrompt: {
        model: 'service',
        stream: 'service',
        safetySettings: 'service',
        serviceTier: 'service',
        labels: 'metadata',
        cachedContent: 'id',
      },
      read: {
        contents: 'content',
        systemInstruction: 'content',
        tools: 'json',
        toolConfig: 'json',
        generationConfig: 'config',
      },
    },
    config: {
      notPrompt: {
        maxOutputTokens: 'sampling',
        candidateCount: 'sampling',
        temperature: 'sampling',
        topP: 'sampling',
        topK: 'sampling',
        stopSequences: 'sampling',
        seed: 'sampling',
        presencePenalty: 'sampling',
        frequencyPenalty: 'sampling',
        responseLogprobs: 'sampling',
        logprobs: 'sampling',
        responseMimeType: 'service',
        responseModalities: 'service',
        mediaResolution: 'service',
        speechConfig: 'service',
        imageConfig: 'service',
        thinkingConfig: 'service',
      },
      read: { responseSchema: 'json', responseJsonSchema: 'json' },
    },
    ...GEMINI_CONTENTS,
  },
  turns: 'contents',
  isFramed: true,
  spelled: camelCase,
} as const satisfies PromptRules

/** How the conversations of two Gemini requests are compared. */
export const GEMINI_COMPARISON_RULES: ConversationComparisonRules = {
  levels: GEMINI_PROMPT_RULES,
  uncompared: namesExcept(PLAIN_FIELDS, [
    'contents',
    'systemInstruction',
    'system_instruction',
    'generationConfig',
    'generation_config',
  ]),
  sampling: {
    of: 'generationConfig',
    names: new Set([
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
    ]),
  },
  isUnforeseeable: (scan) => hasAnyMember(scan, ['cachedContent', 'cached_content']),
}

/** Describes which members of an embeddings request belong to the prompt. */
export const GEMINI_EMBED_PROMPT_RULES = {
  levels: {
    request: {
      notPrompt: { model: 'service', taskType: 'service', outputDimensionality: 'service' },
      read: { requests: 'request', content: 'content', title: 'text' },
    },
    ...GEMINI_CONTENTS,
  },
  turns: 'content',
  spelled: camelCase,
} as const satisfies PromptRules

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
