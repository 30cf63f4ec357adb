import type { ScannedObject } from './json/scanned-object.ts'

/** What a tokenizer counts where the upstream reported nothing. */
export interface PromptText {
  readonly text: string
  /** A flat allowance in tokens for media, message frames and the like: added to the count of `text`. */
  readonly extraTokens: number
}

/** Tokens of one media part, of which `bytes` is the length in the body, base64 included. */
export interface MediaTokens {
  /** As many as it can have. */
  readonly max: (bytes: number, model: string) => number
  /** As many as it has for the most part. */
  readonly typical: (bytes: number) => number
}

// Media cost tokens by what they show, not by their bytes. What a URL or a file id stands for cannot be known
// here, so size never makes it less than the flat part.

/**
 * A picture is cut into tiles or patches after it was scaled down. 1,445 tokens is the most for the models
 * that count tiles, 4,784 for those that count 28-pixel patches, 10,000 where 32-pixel patches are taken at
 * full size. gpt-4o-mini counts 33 times as many as gpt-4o (at a price as much lower): 2,833 + 8 × 5,667.
 */
export const IMAGE_TOKENS: MediaTokens = {
  max: (_bytes, model) => (model.includes('4o-mini') ? 48_169 : 10_000),
  typical: () => 1000,
}

/** Tokens of the largest context that models for documents commonly have. */
const LARGEST_CONTEXT = 1_048_576

/**
 * A document brings its text and, for PDF, a picture of each page: 20,000 for the pages of a short one, and a
 * token a byte for text (a PDF's is compressed, base64 and tokens of four letters make up for that), within
 * the model's context.
 */
export const DOCUMENT_TOKENS: MediaTokens = {
  max: (bytes) => Math.min(20_000 + bytes, LARGEST_CONTEXT),
  typical: () => 3000,
}

/** Marks around a message; `<|start|>role<|message|>…<|end|>` and its like are 3 to 5. */
export const MESSAGE_TOKENS = 8
/**
 * Tokens that chat templates put around a conversation: 3 to 70 tokens (harmony's preamble is the longest).
 * The field names and braces of the body, which are counted but never reach the model, are as many again.
 */
export const REQUEST_TOKENS = 64
/** Instructions that servers add for features that go beyond text: formats, thinking, searches, plug-ins. */
export const FEATURE_TOKENS = 256
/** The instructions that servers add where there are tools, or a format for the answer: up to about 500. */
export const TOOLS_TOKENS = 512

/**
 * An allowance for the features that a request has: some if it has any field beyond the `plain` ones, which
 * change how text is generated but never what the model reads. A field that is unknown here may bring
 * instructions along.
 */
export function featureTokens(scan: ScannedObject, plain: ReadonlySet<string>): number {
  for (const { key, node } of scan.members.values())
    if (!plain.has(key) && scan.kindOf(node) !== 'null') return FEATURE_TOKENS
  return 0
}

/** For an estimate rather than a bound. */
export const TYPICAL_MESSAGE_TOKENS = 4
export const TYPICAL_REQUEST_TOKENS = 3
