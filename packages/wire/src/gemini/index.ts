import type { Codec } from '../codec.ts'
import { decodeReply } from './decode/reply.ts'
import { decodeRequest } from './decode/request.ts'
import { encodeReply } from './encode/reply.ts'
import { encodeRequest } from './encode/request.ts'
import { GeminiStreamDecoder } from './stream/decoder.ts'
import { GeminiStreamEncoder } from './stream/encoder.ts'

/** Exports of the Gemini protocol. */
export { geminiAnswerForms } from './answer-forms.ts'
export {
  checkCountRequest,
  textToCount,
  countBodyWithPrompt,
  countTokensBody,
  embedFieldNames,
  geminiFieldNames,
  geminiRequestSchema,
  readGeminiRequest,
} from './native/request.ts'
export {
  forwardableError as passedOnGeminiError,
  type GeminiErrorText,
  geminiErrorText,
  readGeminiError,
} from './errors.ts'
export { adaptGeminiRequest } from './native/adapt-request.ts'
export { JsonArraySplitter, EventsToJsonArray } from './native/json-array.ts'
export { generateContentPath, methodPath, modelWithoutPrefix } from './model-name.ts'
export { GEMINI_COMPARISON_RULES, GEMINI_EMBED_PROMPT_RULES, GEMINI_PROMPT_RULES } from './native/prompt.ts'
export { GeminiTap, usageOfAnswer } from './native/tap.ts'
export { GEMINI_REQUEST } from './shape.ts'
export { KEEP_ALIVE_FRAME } from './stream/encoder.ts'
export { maxTokensOf, mustStream } from './encode/request.ts'

/** Codec of the Gemini protocol. */
export const geminiCodec: Codec = {
  decodeRequest,
  // Upstreams can read only certain URLs, so files are always downloaded and sent as data.
  mustFetch: ({ source }) => source.kind === 'url',
  encodeRequest,
  answerTool: () => undefined,
  decodeReply,
  encodeReply,
  streamDecoder: (memory, choices) => new GeminiStreamDecoder(memory, choices),
  streamEncoder: (identity, options) => new GeminiStreamEncoder(identity, options),
}
