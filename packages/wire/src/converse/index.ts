import type { UpstreamCodec } from '../codec.ts'
import { decodeReply } from './decode/reply.ts'
import { encodeRequest } from './encode/request.ts'
import { answerTool } from './encode/output-format.ts'
import { ConverseStreamDecoder } from './stream/decoder.ts'

/** Public interface of the converse dialect. */
export { maxTokensOf } from './encode/inference.ts'
export { CONVERSE_CONVERSATION, CONVERSE_PROMPT } from './native/prompt.ts'

/**
 * Converts between Bedrock's Converse API and the form that all dialects share. Only upstreams use this
 * dialect.
 */
export const converseCodec: UpstreamCodec = {
  // Upstreams read no URLs except those of their own storage.
  mustFetch: ({ source }) => source.kind === 'url',
  encodeRequest,
  answerTool,
  decodeReply,
  streamDecoder: (memory) => new ConverseStreamDecoder(memory),
}
