import type { UpstreamCodec } from '../codec.ts'
import { decodeReply } from './decode/reply.ts'
import { encodeRequest } from './encode/request.ts'
import { answerTool } from './encode/output-format.ts'
import { ConverseStreamDecoder } from './stream/decoder.ts'

/** Exports of the Converse protocol. */
export { converseAnswerForms } from './answer-forms.ts'
export { maxTokensOf } from './encode/inference.ts'
export { CONVERSE_COMPARISON_RULES, CONVERSE_PROMPT_RULES } from './native/prompt.ts'
export { CONVERSE_REQUEST } from './shape.ts'

/** Codec of Bedrock's Converse protocol, which only upstreams use. */
export const converseCodec: UpstreamCodec = {
  // Upstreams can read only URLs of their own storage.
  mustFetch: ({ source }) => source.kind === 'url',
  encodeRequest,
  answerTool,
  decodeReply,
  streamDecoder: (memory) => new ConverseStreamDecoder(memory),
}
