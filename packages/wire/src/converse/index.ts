/** Public interface of the converse dialect. */
export { converseCodec } from './codec.ts'
export { maxTokensOf } from './encode/inference.ts'
export { CONVERSE_PROMPT } from './native/prompt.ts'
