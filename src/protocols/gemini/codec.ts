import type { Codec } from '../codec.ts'
import { decodeReply } from './decode-reply.ts'
import { decodeRequest } from './decode-request.ts'
import { encodeReply } from './encode-reply.ts'
import { encodeRequest } from './encode-request.ts'
import { GeminiStreamDecoder } from './stream-decoder.ts'
import { GeminiStreamEncoder } from './stream-encoder.ts'

/** The Gemini API, both ways. */
export const geminiCodec: Codec = {
  decodeRequest,
  // Upstreams read few addresses, and not all of them any: files are fetched and sent inline.
  mustFetch: ({ source }) => source.kind === 'url',
  encodeRequest,
  answerTool: () => undefined,
  decodeReply,
  encodeReply,
  streamDecoder: (memory, choices) => new GeminiStreamDecoder(memory, choices),
  streamEncoder: (identity, options) => new GeminiStreamEncoder(identity, options),
}
