import type { ScannedObject } from './json/scanned-object.ts'
import type { FoundMedia } from './prompt-levels.ts'

/** Text that is counted where the upstream reported no usage. */
export interface PromptText {
  readonly text: string
  /** Tokens for media, message frames and the like, in addition to the count of `text`. */
  readonly extraTokens: number
  /** The same for a charge, in which media count as in a hold. */
  readonly chargedExtraTokens: number
}

/** Upper bounds on what a prompt costs, known before it is sent. */
export interface PromptBounds {
  /** Upper bound on the tokens of the prompt. */
  readonly promptBound: number
  /** Whether tokens of prompt or response may stand for audio or images, which have prices of their own. */
  readonly hasMedia: boolean
  /** Whether parts are only named, such as a file by its id, so that their size is unknown. */
  readonly namesPrompt: boolean
}

/** Whether a model of this name responds in images or audio without being asked to. */
export function respondsInMedia(model: string): boolean {
  return /image|tts|audio/i.test(model)
}

/** Bytes of a prompt for each token that it is expected to have. */
export const EXPECTED_BYTES_PER_TOKEN = 4

/** Estimates for one media part; `bytes` is the length of its data in the body, base64 included. */
export interface MediaTokens {
  /** Upper bound. */
  readonly max: (bytes: number, model: string) => number
  /** Typical number. */
  readonly typical: (bytes: number) => number
}

// Media cost tokens by their content, not by their bytes. The content behind a URL or a file id is unknown
// here, so the bytes never reduce the flat part.

/**
 * Tokens of an image, which is scaled down and split into tiles or patches: at most 1,445 for models that
 * count tiles, 4,784 with 28-pixel patches, 10,000 with 32-pixel patches at full size. gpt-4o-mini counts 33
 * times as many as gpt-4o (at a price as much lower): 2,833 + 8 × 5,667.
 */
export const IMAGE_TOKENS: MediaTokens = {
  max: (_bytes, model) => (model.includes('4o-mini') ? 48_169 : 10_000),
  typical: () => 1000,
}

/** Largest common context of models for documents, in tokens. */
export const LARGEST_CONTEXT = 1_048_576

/**
 * Tokens of a document: its text and, for PDF, an image of each page. 20,000 for the pages of a short one,
 * and a token per byte for text (a PDF's is compressed, which base64 and four-letter tokens make up for),
 * within the model's context.
 */
export const DOCUMENT_TOKENS: MediaTokens = {
  max: (bytes) => Math.min(20_000 + bytes, LARGEST_CONTEXT),
  typical: () => 3000,
}

/**
 * Tokens of sound: 10 to 32 a second, in blocks of up to 30 seconds. Speech is hardly ever coded below 6
 * kbit/s, which is 1,000 bytes of base64 a second: one token in 31 bytes; 16 leaves a margin.
 */
export const AUDIO_TOKENS: MediaTokens = {
  max: (bytes) => 1000 + Math.ceil(bytes / 16),
  typical: (bytes) => 100 + Math.ceil(bytes / 400),
}

/** Tokens of the markup around a message; `<|start|>role<|message|>…<|end|>` and the like are 3 to 5. */
export const MESSAGE_TOKENS = 8
/**
 * Tokens that chat templates put around a conversation, 3 to 70 (harmony's preamble is the longest). The
 * body's field names and braces, which are counted but never reach the model, make up for more.
 */
export const REQUEST_TOKENS = 64
/**
 * Tokens of instructions that servers add for features beyond text: formats, thinking, searches, plug-ins.
 */
export const FEATURE_TOKENS = 256
/** Tokens of instructions that servers add for tools or an output format: up to about 500. */
export const TOOLS_TOKENS = 512

/**
 * Tokens of a request's features: `FEATURE_TOKENS` if it has any field beyond the `plain` ones, which never
 * change the model's input. An unknown field may add instructions.
 */
export function featureTokens(scan: ScannedObject, plain: ReadonlySet<string>): number {
  for (const { key, node } of scan.members.values())
    if (!plain.has(key) && scan.kindOf(node) !== 'null') return FEATURE_TOKENS
  return 0
}

/** Estimate per message, in place of the bound `MESSAGE_TOKENS`. */
export const TYPICAL_MESSAGE_TOKENS = 4
export const TYPICAL_REQUEST_TOKENS = 3

/** Tokens that media can have beyond the bytes that their data have in the body. */
export function mediaExcess(scan: ScannedObject, { tokens, data }: FoundMedia, model: string): number {
  const bytes = data === undefined ? 0 : scan.endOf(data) - scan.startOf(data)
  return tokens.max(bytes, model) - bytes
}
