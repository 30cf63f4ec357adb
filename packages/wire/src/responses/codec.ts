import type { Codec } from '../codec.ts'
import { decodeReply } from './decode/reply.ts'
import { decodeRequest } from './decode/request.ts'
import { mustFetch } from './encode-part.ts'
import { encodeReply } from './encode/reply.ts'
import { encodeRequest } from './encode/request.ts'
import { ResponsesStreamDecoder } from './stream/decoder.ts'
import { ResponsesStreamEncoder } from './stream/encoder.ts'

/** The codec of the responses dialect. */
export const responsesCodec: Codec = {
  decodeRequest,
  mustFetch,
  encodeRequest,
  answerTool: () => undefined,
  decodeReply,
  encodeReply,
  streamDecoder: (memory) => new ResponsesStreamDecoder(memory),
  streamEncoder: (identity, options) => new ResponsesStreamEncoder(identity, options),
}
