/** Public interface of the gemini dialect. */
export { geminiCodec } from './codec.ts'
export { checkCounted, countableText, countedBody } from './count.ts'
export {
  forwardableError as passedOnGeminiError,
  type GeminiErrorText,
  geminiErrorText,
  readGeminiError,
} from './errors.ts'
export { gateGeminiRequest } from './native/gate.ts'
export { JsonArray } from './native/json-array.ts'
export { answerPath, methodPath } from './method-path.ts'
export { modelOf } from './model-name.ts'
export { GEMINI_EMBED_PROMPT, GEMINI_PROMPT } from './prompt-levels.ts'
export { usageOfAnswer } from './reply.ts'
export { geminiRequestSchema, readGeminiRequest } from './native/request.ts'
export { GeminiTap } from './native/tap.ts'
export { maxTokensOf } from './thinking.ts'
export { countNames, embedNames, geminiNames } from './names.ts'
