/** The Gemini API's wire format, as far as the rest of the gateway sees it. */
export { geminiCodec } from './codec.ts'
export { usageOfAnswer } from './reply.ts'
export { readGeminiRequest } from './request.ts'
export { GeminiTap } from './tap.ts'
