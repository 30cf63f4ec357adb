import type { ScannedObject } from './json/scanned-object.ts'
import type { FoundMedia } from './prompt-text.ts'

/** A text whose tokens are counted if the upstream reported no usage. */
export interface PromptText {
  readonly text: string
  /** Tokens of media, message markup and the like, in addition to those of `text`. */
  readonly extraTokens: number
  /** Like `extraTokens`, but for a charge: media count as many tokens as in the amount held for the call. */
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
  /** Whether the prompt refers to content, such as a file by its id, whose size is therefore unknown. */
  readonly namesPrompt: boolean
}

/** Reports whether a model of this name responds with images or audio without being asked to. */
export function respondsInMedia(model: string): boolean {
  return /image|tts|audio/i.test(model)
}

/** Assumed number of bytes per token of a prompt. */
export const EXPECTED_BYTES_PER_TOKEN = 4

/** Token estimates for one media part. `bytes` is the length of its data in the body, including base64. */
export interface MediaTokens {
  /** Upper bound on the tokens. */
  readonly max: (bytes: number, model: string) => number
  /** Typical number of tokens. */
  readonly typical: (bytes: number) => number
}

// The tokens of media depend on their content, not on their bytes. The content behind a URL or a file id is
// unknown, so the constant part of an estimate never depends on the bytes.

/**
 * Tokens of an image. Providers scale it down and split it into tiles or patches: at most 1,445 tokens for
 * models that count tiles, 4,784 with patches of 28 pixels, 10,000 with patches of 32 pixels at full size.
 * gpt-4o-mini counts 33 times as many as gpt-4o (at a correspondingly lower price): 2,833 + 8 × 5,667.
 */
export const IMAGE_TOKENS: MediaTokens = {
  max: (_bytes, model) => (model.includes('4o-mini') ? 48_169 : 10_000),
  typical: () => 1000,
}

/** Largest common context of models that read documents, in tokens. */
export const LARGEST_CONTEXT = 1_048_576

/**
 * Tokens of a document: its text and, for a PDF, an image of each page. That is 20,000 for the pages of a
 * short one, and one per byte of text, up to the model's context. The text of a PDF is compressed, but base64
 * and tokens of four letters make up for that.
 */
export const DOCUMENT_TOKENS: MediaTokens = {
  max: (bytes) => Math.min(20_000 + bytes, LARGEST_CONTEXT),
  typical: () => 3000,
}

/**
 * Tokens of audio: 10 to 32 per second, in blocks of up to 30 seconds. Speech is hardly ever encoded below 6
 * kbit/s, which is 1,000 bytes of base64 per second, or one token per 31 bytes. One token per 16 bytes leaves
 * a margin.
 */
export const AUDIO_TOKENS: MediaTokens = {
  max: (bytes) => 1000 + Math.ceil(bytes / 16),
  typical: (bytes) => 100 + Math.ceil(bytes / 400),
}

/** Tokens of the markup around a message, such as `<|start|>role<|message|>…<|end|>`; usually 3 to 5. */
export const MESSAGE_TOKENS = 8
/**
 * Tokens that chat templates add around a conversation: 3 to 70 (the longest is the preamble of harmony). The
 * field names and braces of the body are counted but never reach the model, which makes up for the
 * difference.
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
 * Returns `FEATURE_TOKENS` if the request has any field that is not in `plain`; the fields in `plain` never
 * add instructions, but an unknown field may.
 */
export function featureTokens(scan: ScannedObject, plain: ReadonlySet<string>): number {
  for (const { key, node } of scan.members.values())
    if (!plain.has(key) && scan.kindOf(node) !== 'null') return FEATURE_TOKENS
  return 0
}

/** Typical number of markup tokens per message; `MESSAGE_TOKENS` is the upper bound. */
export const TYPICAL_MESSAGE_TOKENS = 4
export const TYPICAL_REQUEST_TOKENS = 3

/** Tokens of media in addition to one per byte of their data in the body. */
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
