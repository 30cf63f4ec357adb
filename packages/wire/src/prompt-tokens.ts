import type { ScannedObject } from './json/scanned-object.ts'
import type { FoundMedia } from './prompt-text.ts'

/** Text of a prompt, whose tokens are counted if the upstream reports no usage. */
export interface PromptText {
  readonly text: string
  /** Estimated tokens of media and of the markup around messages, in addition to those of `text`. */
  readonly extraTokens: number
  /**
   * Like `extraTokens`, but media count with their maximum, as in the quota reserved for the call. Used to
   * charge the call.
   */
  readonly chargedExtraTokens: number
}

/** Upper bounds on the size of a prompt, known before it is sent. */
export interface PromptBounds {
  /** Maximum number of tokens of the prompt. */
  readonly promptBound: number
  /** Whether the prompt or the response may contain audio or images, whose tokens have different prices. */
  readonly hasMedia: boolean
  /**
   * Whether the prompt refers to content stored elsewhere, such as a file by its id, so that its size is
   * unknown.
   */
  readonly namesPrompt: boolean
}

/** Whether a model with this name responds with images or audio even if the request does not ask for them. */
export function respondsWithMedia(model: string): boolean {
  return /image|tts|audio/i.test(model)
}

/** Average number of bytes of a prompt per token. */
export const EXPECTED_BYTES_PER_TOKEN = 4

/**
 * Estimates the tokens of one image, document or recording. `bytes` is the length of its data in the body;
 * base64 is not decoded for this.
 */
export interface MediaTokens {
  /** Maximum number of tokens. */
  readonly max: (bytes: number, model: string) => number
  /** Typical number of tokens. */
  readonly typical: (bytes: number) => number
}

// Every estimate has a part that does not depend on the number of bytes, because media that are given by URL
// or file id have no bytes in the request, and their content is unknown.

/**
 * Tokens of an image. Providers scale it down and split it into tiles or patches: at most 1,445 tokens for
 * models that count tiles, 4,784 with patches of 28 pixels, 10,000 with patches of 32 pixels at full size.
 * gpt-4o-mini counts 33 times as many as gpt-4o (at a correspondingly lower price): 2,833 + 8 × 5,667.
 */
export const IMAGE_TOKENS: MediaTokens = {
  max: (_bytes, model) => (model.includes('4o-mini') ? 48_169 : 10_000),
  typical: () => 1000,
}

/** Largest context in tokens of the common models that read documents. */
export const LARGEST_CONTEXT = 1_048_576

/**
 * Tokens of a document: its text and, for PDF, an image of each page. Estimated as 20,000 for the pages of a
 * short document, plus one per byte of data, up to the model's context. The text in a PDF is compressed, but
 * base64 and the four letters of an average token compensate for that.
 */
export const DOCUMENT_TOKENS: MediaTokens = {
  max: (bytes) => Math.min(20_000 + bytes, LARGEST_CONTEXT),
  typical: () => 3000,
}

/**
 * Tokens of audio: 10 to 32 per second, in blocks of up to 30 seconds. Speech is hardly ever encoded with
 * less than 6 kbit/s, which is 1,000 bytes of base64 per second or 31 bytes per token. 16 bytes per token
 * leaves a margin.
 */
export const AUDIO_TOKENS: MediaTokens = {
  max: (bytes) => 1000 + Math.ceil(bytes / 16),
  typical: (bytes) => 100 + Math.ceil(bytes / 400),
}

/**
 * Maximum number of tokens of the markup around a message, such as `<|start|>role<|message|>…<|end|>`;
 * usually 3 to 5.
 */
export const MESSAGE_TOKENS = 8
/**
 * Maximum number of tokens that chat templates put around a conversation. 3 to 70 were seen (harmony has the
 * longest preamble). The difference is covered by the field names and braces of the body, which are counted
 * but never reach the model.
 */
export const REQUEST_TOKENS = 64
/**
 * Maximum number of tokens of instructions that servers add for features other than text: formats, thinking,
 * searches, plug-ins.
 */
export const FEATURE_TOKENS = 256
/**
 * Maximum number of tokens of instructions that servers add for tools or an output format; up to about 500
 * were seen.
 */
export const TOOLS_TOKENS = 512

/**
 * Returns `FEATURE_TOKENS` if the request contains a field that is not in `plain`; otherwise 0. `plain` are
 * the fields that never change the model's input; any other field may cause the server to add instructions.
 */
export function tokensOfUnlistedMembers(scan: ScannedObject, plain: ReadonlySet<string>): number {
  for (const { key, node } of scan.members.values())
    if (!plain.has(key) && scan.kindOf(node) !== 'null') return FEATURE_TOKENS
  return 0
}

/** Typical number of tokens of the markup around a message; `MESSAGE_TOKENS` is the maximum. */
export const TYPICAL_MESSAGE_TOKENS = 4
export const TYPICAL_REQUEST_TOKENS = 3

/**
 * Maximum number of tokens of media minus the number of bytes of their data, because these bytes are counted
 * with the body.
 */
export function extraMediaTokens(scan: ScannedObject, { tokens, data }: FoundMedia, model: string): number {
  const bytes = data === undefined ? 0 : scan.endOf(data) - scan.startOf(data)
  return tokens.max(bytes, model) - bytes
}

/**
 * Estimates the tokens of an encrypted text by the length of its base64: four characters are three bytes, and
 * four bytes are one token.
 */
export function tokensOfEncryptedText(base64Length: number): number {
  return Math.ceil((base64Length * 3) / 16)
}
