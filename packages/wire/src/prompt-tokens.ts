import type { ScannedObject } from './json/scanned-object.ts'
import type { FoundMedia } from './prompt-text.ts'

/** Text whose tokens are counted if the upstream reported no usage. */
export interface PromptText {
  readonly text: string
  /** Tokens of media, message markup and the like, in addition to those of `text`. */
  readonly extraTokens: number
  /** Tokens for media, message markup and the like in a charge, where media count as much as in a hold. */
  readonly chargedExtraTokens: number
}

/** Upper bounds on the size of a prompt, known before it is sent. */
export interface PromptBounds {
  /** Upper bound on the tokens of the prompt. */
  readonly promptBound: number
  /**
   * Whether the prompt or the response may contain audio or images, whose tokens have prices of their own.
   */
  readonly hasMedia: boolean
  /** Whether parts are only referred to, such as a file by its id, so that their size is unknown. */
  readonly namesPrompt: boolean
}

/** Reports whether a model of this name responds with images or audio without being asked to. */
export function respondsInMedia(model: string): boolean {
  return /image|tts|audio/i.test(model)
}

/** Expected bytes of a prompt per token. */
export const EXPECTED_BYTES_PER_TOKEN = 4

/** Estimates for one media part. `bytes` is the length of its data in the body, including base64. */
export interface MediaTokens {
  /** Upper bound. */
  readonly max: (bytes: number, model: string) => number
  /** Typical number. */
  readonly typical: (bytes: number) => number
}

// Media cost tokens by their content, not by their bytes. The content behind a URL or a file id is unknown,
// so that the constant part of an estimate never depends on the bytes.

/**
 * Tokens of an image, which is scaled down and split into tiles or patches: at most 1,445 for models that
 * count tiles, 4,784 with 28-pixel patches, 10,000 with 32-pixel patches at full size. gpt-4o-mini counts 33
 * times as many as gpt-4o (at a correspondingly lower price): 2,833 + 8 × 5,667.
 */
export const IMAGE_TOKENS: MediaTokens = {
  max: (_bytes, model) => (model.includes('4o-mini') ? 48_169 : 10_000),
  typical: () => 1000,
}

/** Largest common context of models that read documents, in tokens. */
export const LARGEST_CONTEXT = 1_048_576

/**
 * Tokens of a document: its text and, for PDF, an image of each page. 20,000 for the pages of a short one,
 * and one per byte of text, up to the model's context. A PDF's text is compressed, but base64 and tokens of
 * four letters make up for that.
 */
export const DOCUMENT_TOKENS: MediaTokens = {
  max: (bytes) => Math.min(20_000 + bytes, LARGEST_CONTEXT),
  typical: () => 3000,
}

/**
 * Tokens of audio: 10 to 32 per second, in blocks of up to 30 seconds. Speech is hardly ever encoded below 6
 * kbit/s, which is 1,000 bytes of base64 per second, or one token in 31 bytes. 16 leaves a margin.
 */
export const AUDIO_TOKENS: MediaTokens = {
  max: (bytes) => 1000 + Math.ceil(bytes / 16),
  typical: (bytes) => 100 + Math.ceil(bytes / 400),
}

/** Tokens of the markup around a message, such as `<|start|>role<|message|>…<|end|>`; usually 3 to 5. */
export const MESSAGE_TOKENS = 8
/**
 * Tokens that chat templates put around a conversation: 3 to 70 (harmony's preamble is the longest). The
 * body's field names and braces, which are counted but never reach the model, make up for the difference.
 */
export const REQUEST_TOKENS = 64
/**
 * Tokens of instructions that servers add for features other than text: formats, thinking, searches,
 * plug-ins.
 */
export const FEATURE_TOKENS = 256
/** Tokens of instructions that servers add for tools or an output format: up to about 500. */
export const TOOLS_TOKENS = 512

/**
 * Returns `FEATURE_TOKENS` if the request has any field other than the `plain` ones, which never change the
 * model's input. An unknown field may add instructions.
 */
export function featureTokens(scan: ScannedObject, plain: ReadonlySet<string>): number {
  for (const { key, node } of scan.members.values())
    if (!plain.has(key) && scan.kindOf(node) !== 'null') return FEATURE_TOKENS
  return 0
}

/** Estimate per message; `MESSAGE_TOKENS` is the upper bound. */
export const TYPICAL_MESSAGE_TOKENS = 4
export const TYPICAL_REQUEST_TOKENS = 3

/** Tokens of media beyond one per byte of their data in the body. */
export function mediaTokensBeyondBytes(
  scan: ScannedObject,
  { tokens, data }: FoundMedia,
  model: string,
): number {
  const bytes = data === undefined ? 0 : scan.endOf(data) - scan.startOf(data)
  return tokens.max(bytes, model) - bytes
}

/**
 * Estimates the tokens of an encrypted text by the length of its base64: four characters are three bytes, and
 * four bytes are one token.
 */
export function encryptedTokens(base64Length: number): number {
  return Math.ceil((base64Length * 3) / 16)
}
