/** The wire format of Bedrock's Converse API, as far as the rest of the gateway sees it. */
export { converseCodec } from './codec.ts'
export { maxTokensOf } from './inference.ts'
export { CONVERSE_PROMPT } from './prompt-levels.ts'
