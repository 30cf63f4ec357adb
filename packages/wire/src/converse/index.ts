/** Public interface of the converse dialect. */
export { converseCodec } from './codec.ts'
export { maxTokensOf } from './inference.ts'
export { CONVERSE_PROMPT } from './prompt-levels.ts'
